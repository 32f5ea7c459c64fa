// Runs the trials of a search as commands of their own, and records their results in the search's folder
// (search_folder.hpp).
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/io/descriptor.hpp"
#include "search/hparams/trial_events.hpp"
#include "search/journal/search_folder.hpp"
#include "search/journal/shared_search.hpp"
#include "search/search_state.hpp"
#include "search/space/space.hpp"
#include "search/trial/trial_command.hpp"
#include "search/trial/trial_launch.hpp"
#include "search/trial/trial_result.hpp"
#include "slurm/roles/child_process.hpp"
#include "slurm/roles/signal_queue.hpp"

namespace lockstep {

// Runs a command to its end, and returns its output. Says that it waits after 10 seconds. Kills the command and throws
// Error(usage) if it prints more than 1 MiB, or Error(other) if it does not end within `most_seconds`: 300 for
// run_to_end().
ProgramOutput run_to_end(const std::vector<std::string>& words);
ProgramOutput run_within(double most_seconds, const std::vector<std::string>& words);

class SearchRun {
 public:
  // The caller holds the folder's lock, unless other processes share the search. The queue's signals are blocked in all
  // threads. Throws as SearchState.
  SearchRun(const Space& space, TrialCommands& commands, TrialPlaces places, SignalQueue& signals,
            std::filesystem::path folder, SearchParts parts);

  // Returns when all trials have ended, or after a signal, when all have stopped with a checkpoint: false. If a trial
  // cannot go on because of the machine (trial_result.hpp), or a custom searcher's program fails, stops the others, and
  // throws an Error with the cause. Throws as system_failure() if the journal or a log cannot be written. After any of
  // this, a new SearchRun continues.
  bool run();
  // Trains a trial again up to its last result, which stays as it is: for one whose folder is gone. Returns and throws
  // as run().
  bool repeat(std::int64_t trial);

  const std::map<std::int64_t, TrialRecord>& trials() const { return state_.trials(); }
  const SearchFolder& folder() const { return folder_; }
  bool is_continued() const { return state_.is_continued(); }
  // Whether there is something left to train or to ask.
  bool is_open() const;

 private:
  struct Running {
    ChildProcess process;
    Order order;
    std::int64_t steps;
    Descriptor log;
    std::size_t place;  // among the trials at once
    std::filesystem::path exit_report;
    bool is_lost = false;  // another process has taken the trial
    std::deque<std::string> last_lines = {};
    bool was_alone = true;  // no other trial ran at the same time
  };

  void take_answers();
  void write_result(const Order& order, std::int64_t steps, const TrialEnd& end);
  void start_trials();
  bool must_wait(const Order& order) const;
  std::optional<Order> next_order() const;
  void require_no_later_checkpoint(const Order& order, std::int64_t steps) const;
  void start(const Order& order, Descriptor log);
  std::filesystem::path exit_report_of(std::int64_t trial) const;
  std::size_t free_place() const;
  void wait();
  void take_signals();
  void take_output(Running& trial, std::int64_t number);
  void take_ends();
  void judge_end(const Running& trial, int code);
  void take_failure(const Running& trial, const TrialEnd& end);
  void restart(const Order& order, const TrialEnd& end);
  void give_up(const Order& order, const TrialEnd& end);
  void ask_to_stop(const std::string& why);
  void stop_at_once(const std::string& why);
  void kill_trials_that_stay() const;
  void show_progress();
  // search_run_shared.cpp:
  std::optional<Order> take_shared_order();
  void decide(std::int64_t trial, const std::function<void()>& record);
  void look_for_lost_trials();

  const Space& space_;
  TrialCommands& commands_;
  TrialPlaces places_;
  SignalQueue& signals_;
  SearchFolder folder_;
  SearchParts parts_;
  LockHolder own_ = this_lock_holder();
  SearchState state_;
  std::map<std::int64_t, Running> running_;
  std::int64_t waits_for_ = 0;                  // trial whose folder or log another process has; 0: none yet
  std::int64_t repeated_ = 0;                   // by repeat(); 0: none
  std::set<std::int64_t> alone_;                // trials that run only while no other does
  std::map<std::int64_t, LeaseWatch> watches_;  // whether another process has a trial's folder
  bool is_stopping_ = false;
  bool was_asked_to_stop_ = false;                 // by a signal
  std::optional<Stopwatch> since_second_request_;  // by another one
  std::optional<Error> obstacle_;                  // because of which the search stops
  bool has_header_ = false;
  Stopwatch watch_;
  std::optional<Stopwatch> looked_;  // since this process looked for decisions and free trials of others
  Stopwatch checked_;                // since it looked whether it still has its trials
};

}  // namespace lockstep
