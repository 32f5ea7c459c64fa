// The only exception type, and the exit codes it carries.
//
// Every message has the form: what failed: the library's reason (why it matters). What to try.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace lockstep {

// Why a program ended. The value is its exit code. Job scripts use it to decide whether to retry.
enum class Failure : int {
  other = 1,            // anything else: retried up to the retry count
  usage = 2,            // wrong option, file name or configuration: never retried
  bad_data = 65,        // damaged shard or checkpoint, label out of range: never retried
  out_of_memory = 70,   // host or device memory: never retried
  bad_node = 71,        // always retried, on another node
  stopped_early = 75,   // with a checkpoint, or before the first step: always retried, not counted
  out_of_step = 76,     // a rank hung or deviates: always retried, counted
  diverged = 79,        // the loss is NaN or infinite: never retried
  output_closed = 141,  // nobody reads the output; the program says nothing. As if SIGPIPE had ended it
};

class Error : public std::runtime_error {
 public:
  Error(Failure failure, const std::string& text) : std::runtime_error(text), failure_(failure) {}
  explicit Error(const std::string& text) : Error(Failure::other, text) {}

  Failure failure() const { return failure_; }
  int exit_code() const { return static_cast<int>(failure_); }

 private:
  Failure failure_;
};

// For errors of users, files and machines. Throws Error(failure, text) unless `condition` holds.
template <typename... Args>
void require(bool condition, Failure failure, fmt::format_string<Args...> text, Args&&... args) {
  if (!condition) throw Error(failure, fmt::format(text, std::forward<Args>(args)...));
}

}  // namespace lockstep
