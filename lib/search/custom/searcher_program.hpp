// The program of a custom searcher: a child process that is asked and answers, one line of JSON each.
#pragma once

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/io/descriptor.hpp"
#include "slurm/roles/child_process.hpp"

namespace lockstep {

class SearcherProgram {
 public:
  // Starts the command. Its standard error is appended to `log`. Throws as ChildProcess, and as system_failure().
  SearcherProgram(std::vector<std::string> command, double answer_seconds, std::filesystem::path log);
  SearcherProgram(const SearcherProgram&) = delete;
  SearcherProgram& operator=(const SearcherProgram&) = delete;
  ~SearcherProgram();  // kills it if it still runs

  // Sends a line that needs no answer.
  void send(const nlohmann::json& line);
  // Sends a question. The answer to the one before has arrived.
  void ask(const nlohmann::json& question);
  // The answer, if it has arrived; does not wait. Throws Error(other) if the program has ended, or has not answered in
  // time, and Error(usage) if the line is not JSON.
  std::optional<nlohmann::json> answer();
  int handle() const { return process_->handle(); }  // for poll()
  // Says that the search is done, and waits a few seconds for the program to end.
  void finish();

  std::string name() const;  // for messages

 private:
  void flush();

  std::vector<std::string> command_;
  double answer_seconds_;
  std::filesystem::path log_;
  Descriptor input_{-1};
  std::unique_ptr<ChildProcess> process_;
  std::string unsent_;
  Stopwatch asked_;
};

}  // namespace lockstep
