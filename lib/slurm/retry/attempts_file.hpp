// attempts.jsonl: the outcome of each attempt of a job, stored beside the job's log. slurm/README.md lists its fields.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "slurm/retry/decision.hpp"

namespace lockstep {

// One line. An attempt has a line with cause `running` when it begins, and a second line once it has ended.
struct Attempt {
  std::int64_t job = 0;
  std::int64_t attempt = 0;
  Cause cause = Cause::running;
  RetryKind kind = RetryKind::none;
  std::optional<int> code;
  std::optional<RetryAction> action;
  std::string sentence;
  bool counted = false;
  std::int64_t transient_retries = 0;  // total of the job so far
  std::int64_t counted_retries = 0;
  std::optional<std::int64_t> checkpoint_step;  // step of the newest checkpoint
  std::vector<std::string> excluded;            // nodes excluded from the next attempt
  std::int64_t started = 0;                     // seconds since 1970
  std::optional<std::int64_t> ended;
  std::vector<std::string> nodes;
  std::int64_t log_from = 0;  // offset of this attempt's output in the log, in bytes
};

std::string attempt_line(const Attempt& attempt);  // without a newline
// Returns nullopt if `line` is not in this format or a value is out of range.
std::optional<Attempt> parse_attempt(std::string_view line);

class AttemptsFile {
 public:
  // Reads the lines of `job`; a missing file has none. Other lines are ignored and stay in the file. Throws what
  // read_file() throws.
  AttemptsFile(std::filesystem::path path, std::int64_t job);

  // The last line of each attempt, ordered by attempt.
  const std::vector<Attempt>& attempts() const { return attempts_; }
  // The last line of `attempt`, or null.
  const Attempt* find(std::int64_t attempt) const;
  RetryHistory history() const;

  // Adds a line and rewrites the file. Throws what write_file_atomically() throws.
  void add(const Attempt& attempt);

 private:
  void take(Attempt attempt);

  std::filesystem::path path_;
  std::string text_;
  std::vector<Attempt> attempts_;
};

}  // namespace lockstep
