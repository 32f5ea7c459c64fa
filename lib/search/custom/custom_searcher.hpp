// The decisions of a search by a program of the user (apps/search.md). The program is asked for settings of new trials,
// and after each result whether the trial continues. Its answers are journaled: a continued search replays them without
// asking, and tells a new process of the program what is known.
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "search/custom/searcher_program.hpp"
#include "search/searcher.hpp"
#include "search/space/space.hpp"

namespace lockstep {

class CustomSearcher {
 public:
  // `folder`: of the search; for the program's log. Starts no program yet.
  CustomSearcher(const Space& space, std::filesystem::path folder) : space_(space), folder_(std::move(folder)) {}

  const std::vector<OptionWord>& settings_of(std::int64_t trial) const { return trials_.at(trial).words; }

  // A trial has reached a length, or has failed (no metric): the program will be asked about it.
  void report(const Order& order, std::optional<double> metric);

  // Whether the program has still something to say.
  bool is_open() const { return !reports_.empty() || proposes(); }

  // Asks the next question and takes the answer, as far as that is possible without waiting. Returns the line for the
  // journal, to be followed: {"ask": "propose", "trial": 3, "answer": {...}}. `has_room`: for another trial;
  // `is_busy`: trials are under way. Throws as SearcherProgram::answer().
  std::optional<nlohmann::json> next_answer(bool has_room, bool is_busy);
  // The order that follows from such a line, if any. Throws Error(usage) with a sentence if the answer is not valid.
  std::vector<Order> follow(const nlohmann::json& line);

  int handle() const { return program_ ? program_->handle() : -1; }  // for poll()
  void finish();

 private:
  struct Result {
    std::int64_t length = 0;
    std::optional<double> metric;
  };
  struct Trial {
    nlohmann::json settings;  // as proposed
    std::vector<OptionWord> words;
    std::size_t rung = 0;
    std::int64_t length = 0;
    std::vector<Result> results;  // that the program has answered
    bool is_stopped = false;
  };
  struct Report {
    std::int64_t trial = 0;
    Result result;
  };

  bool proposes() const { return !is_done_ && std::ssize(trials_) < space_.searcher.max_trials; }
  std::optional<nlohmann::json> next_question(bool has_room);
  nlohmann::json begin_message() const;
  std::vector<Order> follow_proposal(const nlohmann::json& answer);
  std::vector<Order> follow_report(std::int64_t number, const nlohmann::json& answer);
  std::int64_t length_in(const nlohmann::json& answer, std::int64_t above) const;

  const Space& space_;
  std::filesystem::path folder_;
  std::unique_ptr<SearcherProgram> program_;
  std::map<std::int64_t, Trial> trials_;
  std::deque<Report> reports_;              // without an answer
  std::optional<nlohmann::json> question_;  // without an answer
  bool waits_ = false;                      // until the next result
  bool is_done_ = false;
};

}  // namespace lockstep
