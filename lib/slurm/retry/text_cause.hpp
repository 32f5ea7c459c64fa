// Causes of failure in what a program printed last: the only table of such messages. For programs that write no exit
// report.
//
// Only the error with which the program ended counts. It is the exception of the last Python traceback, with those that
// it is chained to, if it is among the last lines. Otherwise it is any of the last lines. A program handles errors too:
// earlier messages and tracebacks, and warnings, have not ended it.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "slurm/retry/cause.hpp"

namespace lockstep {

// More lines than this are not needed.
inline constexpr std::size_t lines_for_text_cause = 100;

struct TextCause {
  Cause cause = Cause::failed;
  std::string line;  // shows the cause
};

// `lines` are those that the failed task printed last, oldest first. `code` is its exit code. Returns nullopt if the
// code has a specific cause, or is that of a signal from outside.
std::optional<TextCause> find_text_cause(int code, std::span<const std::string> lines);

// Returns the cause of a line that find_text_cause() returned.
std::optional<Cause> cause_in_line(const std::string& line);

}  // namespace lockstep
