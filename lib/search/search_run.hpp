// Runs the trials of a search as commands of their own, and records their results in the search's folder.
//
//   FOLDER/search.jsonl     the journal (journal.hpp)
//   FOLDER/trial-3          output folder of trial 3; trial-3.log: what its commands printed
//   FOLDER/best.h5          the best trial's model.h5, at the end
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/io/descriptor.hpp"
#include "search/journal.hpp"
#include "search/searcher.hpp"
#include "search/space.hpp"
#include "search/trial_command.hpp"
#include "search/trial_launch.hpp"
#include "search/trial_record.hpp"
#include "search/trial_result.hpp"
#include "slurm/roles/child_process.hpp"
#include "slurm/roles/signal_queue.hpp"

namespace lockstep {

// Runs a command to its end, and returns its output.
ProgramOutput run_to_end(const std::vector<std::string>& words);

class SearchRun {
 public:
  // The caller holds the folder's lock, and has blocked the queue's signals in all threads. Replays the journal: throws
  // Error(usage) if it belongs to another space, Error(bad_data) if its decisions are not those of this version.
  SearchRun(const Space& space, TrialCommands& commands, TrialPlaces places, SignalQueue& signals,
            std::filesystem::path folder);

  // Returns when all trials have ended, or after a signal, when all have stopped with a checkpoint: false. Throws if
  // the journal cannot be written.
  bool run();

  const std::map<std::int64_t, TrialRecord>& trials() const { return trials_; }
  std::filesystem::path folder_of(std::int64_t trial) const;

 private:
  struct Running {
    ChildProcess process;
    Order order;
    std::int64_t steps;
    Descriptor log;
    std::size_t place;  // among the trials at once
  };

  void replay();
  void replay_line(const nlohmann::json& line, std::size_t number);
  void take_orders(const std::vector<Order>& orders);
  nlohmann::json json_of(const std::vector<Order>& orders) const;
  std::vector<Order> record(const Order& order, std::int64_t steps, const TrialEnd& end);
  void write_result(const Order& order, std::int64_t steps, const TrialEnd& end);
  void start_trials();
  void start(const Order& order, Descriptor log);
  std::size_t free_place() const;
  void wait();
  void take_signals();
  void take_output(Running& trial, std::int64_t number);
  void take_ends();
  void take_end(const Running& trial, int code);
  void ask_to_stop(const std::string& why);
  void show_progress();
  std::filesystem::path exit_report_of(std::int64_t trial) const;

  const Space& space_;
  TrialCommands& commands_;
  TrialPlaces places_;
  SignalQueue& signals_;
  std::filesystem::path folder_;
  Journal journal_;
  Searcher searcher_;
  std::vector<Order> open_;  // without a result; some of them are running
  std::map<std::int64_t, Running> running_;
  std::map<std::int64_t, TrialRecord> trials_;
  std::int64_t waits_for_ = 0;  // trial whose earlier command has not ended; 0: none yet
  bool is_stopping_ = false;
  bool has_header_ = false;
  Stopwatch watch_;
};

// Copies the model of `trial_folder` to best.h5 in `folder`. Throws as write_file_atomically().
void keep_best_model(const std::filesystem::path& trial_folder, const std::filesystem::path& folder);

}  // namespace lockstep
