// Why an attempt of a job ended, and what follows from it: the one table of causes.
//
// The kinds are OpenPAI's. An attempt whose kind is
//   transient           is repeated, and not counted
//   transient_conflict  is repeated after a while of random length, and not counted: what it collided with may be gone
//   unknown             is repeated as often as the user's retry count says
//   permanent           is not repeated: it would end the same way
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/text/choice.hpp"

namespace lockstep {

enum class RetryKind : std::uint8_t { none, transient, transient_conflict, unknown, permanent };
// As users write them and as attempts.jsonl has them. `none` is of an attempt that has not failed.
inline constexpr std::array<Choice<RetryKind>, 5> retry_kinds{{{"none", RetryKind::none},
                                                               {"transient", RetryKind::transient},
                                                               {"transient_conflict", RetryKind::transient_conflict},
                                                               {"unknown", RetryKind::unknown},
                                                               {"permanent", RetryKind::permanent}}};

// Where the next attempt may run: on any node, or on none that this attempt's failure is blamed on.
enum class NextNodes : std::uint8_t { any, others };

enum class Cause : std::uint8_t {
  running,
  done,
  stopped_for_good,
  cancelled,
  time_limit,
  preempted,
  node_failure,
  requeued,
  lost,
  too_many_attempts,
  stopped_early,
  bad_node,
  out_of_step,
  failed,
  usage,
  bad_data,
  out_of_memory,
  diverged,
  killed,
  terminated,
  crashed,
  illegal_instruction,
  bus_error,
  arithmetic_error,
  broken_pipe,
  no_program,
  resource_conflict,
  other_code,
  rule,
};

struct CauseRow {
  Cause cause;
  const char* name;  // in attempts.jsonl and in reports
  RetryKind kind;
  NextNodes next;
  const char* description;  // of the cause, where no exit report says more
};

// `rule` has the kind that the user's rule states; its row has `unknown`.
const CauseRow& row_of(Cause cause);
std::optional<Cause> cause_named(std::string_view name);

// Of a program's exit code 1 to 255: our own (base/error.hpp), a shell's for a program that it did not find, 128 + a
// signal, or other_code.
Cause cause_of_code(int code);
// Of the signal that ended a rank.
Cause cause_of_signal(int signal);

}  // namespace lockstep
