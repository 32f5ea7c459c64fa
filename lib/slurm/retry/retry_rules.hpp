// The user's retry rules, read from the file that LOCKSTEP_RETRY_RULES names. One rule a line; the first match applies:
//
//   # KIND [elsewhere] code NUMBER | log PATTERN
//   transient code 17
//   transient elsewhere log uncorrectable ECC error
//   permanent log (CUDA|cuBLAS) out of memory
//
// A pattern is a POSIX extended regular expression. It is matched against each of the last lines of the attempt's
// output. Limits on the pattern's length, its repetitions and the number of rules keep the matching time to seconds.
// `elsewhere`: the next attempt avoids the node that the exit report names, or all of the attempt's nodes if it names
// none.
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
  std::string pattern;  // used if `code` is not set
};

using RetryRules = std::vector<RetryRule>;

// Throws Error(usage) that names `file`, the line and the error.
RetryRules parse_retry_rules(std::string_view text, const std::filesystem::path& file);
// Throws what read_file() and parse_retry_rules() throw.
RetryRules read_retry_rules(const std::filesystem::path& file);

struct RuleMatch {
  RetryRule rule;
  std::string matched;  // "code 17", or the line of the log
};
// `log` is the end of the attempt's output.
std::optional<RuleMatch> first_match(const RetryRules& rules, int code, std::string_view log);

}  // namespace lockstep
