// attempts.jsonl: what became of each attempt of a job, beside the job's log. slurm/README.md has its fields.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "slurm/retry/decision.hpp"

namespace lockstep {

// One line. An attempt has one of cause `running` when it begins, and another when it has ended.
struct Attempt {
  std::int64_t job = 0;
  std::int64_t attempt = 0;
  Cause cause = Cause::running;
  RetryKind kind = RetryKind::none;
  std::optional<int> code;
  std::optional<RetryAction> action;
  std::string sentence;
  bool counted = false;
  std::int64_t transient_retries = 0;  // of the job so far
  std::int64_t counted_retries = 0;
  std::optional<std::int64_t> checkpoint_step;  // the newest one's
  std::vector<std::string> excluded;            // from the next attempt
  std::int64_t started = 0;                     // seconds since 1970
  std::optional<std::int64_t> ended;
  std::vector<std::string> nodes;
  std::int64_t log_from = 0;  // bytes of the log that earlier attempts wrote
};

std::string attempt_line(const Attempt& attempt);  // without a new line
// Nothing where `line` is none of ours, or a value is not one it may have.
std::optional<Attempt> parse_attempt(std::string_view line);

class AttemptsFile {
 public:
  // What is there of `job`; none where there is no file. What is no line of ours is left out, and stays in the file.
  // Throws as read_file().
  AttemptsFile(std::filesystem::path path, std::int64_t job);

  // The last line of each attempt, in the order of attempts.
  const std::vector<Attempt>& attempts() const { return attempts_; }
  // That of `attempt`; null where there is none.
  const Attempt* find(std::int64_t attempt) const;
  RetryHistory history() const;

  // Adds a line, and writes the file anew. Throws as write_file_atomically().
  void add(const Attempt& attempt);

 private:
  void take(Attempt attempt);

  std::filesystem::path path_;
  std::string text_;
  std::vector<Attempt> attempts_;
};

}  // namespace lockstep
