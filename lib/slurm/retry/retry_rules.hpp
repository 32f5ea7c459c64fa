// The user's own rules on what to repeat, in the file that LOCKSTEP_RETRY_RULES names. One a line, the first that
// matches an attempt counts:
//
//   # KIND [elsewhere] code NUMBER | log PATTERN
//   transient code 17
//   transient elsewhere log uncorrectable ECC error
//   permanent log (CUDA|cuBLAS) out of memory
//
// A pattern is a POSIX extended regular expression, looked for in each of the last lines that the attempt printed.
// Its length and repetitions, and the number of rules, are bounded, so that looking for them takes seconds.
// `elsewhere`: not on the node that the exit report names again, or on none of the attempt's nodes where it names none.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "slurm/retry/cause.hpp"

namespace lockstep {

struct RetryRule {
  RetryKind kind = RetryKind::unknown;
  NextNodes next = NextNodes::any;
  std::optional<int> code;
  std::string pattern;  // where there is no code
};

using RetryRules = std::vector<RetryRule>;

// Throws Error(usage) naming `file`, the line and what is wrong with it.
RetryRules parse_retry_rules(std::string_view text, const std::filesystem::path& file);
// Throws as read_file() and parse_retry_rules().
RetryRules read_retry_rules(const std::filesystem::path& file);

struct RuleMatch {
  RetryRule rule;
  std::string matched;  // "code 17", or the line of the log
};
// `log` is the end of what the attempt printed.
std::optional<RuleMatch> first_match(const RetryRules& rules, int code, std::string_view log);

}  // namespace lockstep
