// The causes for which an attempt of a job ends, and how the job is retried after each: the only table of causes.
//
// The kinds are OpenPAI's. An attempt is retried according to its kind:
//   transient           retried; does not count
//   transient_conflict  retried after a random delay; does not count. The conflict may be gone by then.
//   unknown             retried up to the user's retry count
//   permanent           not retried: it would fail the same way
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/text/choice.hpp"

namespace lockstep {

enum class RetryKind : std::uint8_t { none, transient, transient_conflict, unknown, permanent };
// The names in rule files and in attempts.jsonl. `none`: the attempt has not failed.
inline constexpr std::array<Choice<RetryKind>, 5> retry_kinds{{{"none", RetryKind::none},
                                                               {"transient", RetryKind::transient},
                                                               {"transient_conflict", RetryKind::transient_conflict},
                                                               {"unknown", RetryKind::unknown},
                                                               {"permanent", RetryKind::permanent}}};

// Where the next attempt may run: on any node, or only on nodes that are not among the bad nodes.
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
  import_error,
  driver_too_old,
  disk_full,
  other_code,
  rule,
};

struct CauseRow {
  Cause cause;
  const char* name;  // in attempts.jsonl and in reports
  RetryKind kind;
  NextNodes next;
  const char* description;  // used if no exit report gives more detail
};

// For `rule`, the user's rule states the kind; the row has `unknown`.
const CauseRow& row_of(Cause cause);
std::optional<Cause> cause_named(std::string_view name);

// Maps an exit code from 1 to 255: one of base/error.hpp, a shell's code for a program that it did not find, or 128 + a
// signal. Every other code gives other_code.
Cause cause_of_code(int code);
// Maps the signal that ended a rank.
Cause cause_of_signal(int signal);

}  // namespace lockstep
