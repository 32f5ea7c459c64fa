// The one exception type, and the exit codes it carries.
//
// Every message follows one grammar: what failed: the library's words (why it matters). What to try.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace lockstep {

// Why a program ended. The value is its exit code; job scripts decide by it whether a retry makes sense.
enum class Failure : int {
  other = 1,           // not listed below: retried up to the retry count
  usage = 2,           // option, file name or configuration: never retried
  bad_data = 65,       // shard or checkpoint damaged, label out of range: never
  out_of_memory = 70,  // host or device: never
  bad_node = 71,       // always, on another node
  stopped_early = 75,  // with a checkpoint, or before the first step: always, not counted
  out_of_step = 76,    // a rank hung or deviates: always, counted
  diverged = 79,       // loss is NaN or infinite: never
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

// For what users, files and machines get wrong. Throws Error(failure, text) unless `condition` holds.
template <typename... Args>
void require(bool condition, Failure failure, fmt::format_string<Args...> text, Args&&... args) {
  if (!condition) throw Error(failure, fmt::format(text, std::forward<Args>(args)...));
}

}  // namespace lockstep
