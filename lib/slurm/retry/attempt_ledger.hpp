// Records the start and the end of an attempt. job_attempt uses it for the scripts; it never calls Slurm.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "slurm/retry/attempts_file.hpp"
#include "slurm/retry/decision.hpp"

namespace lockstep {

// One start of a job's script, and the paths of its files.
struct AttemptContext {
  std::int64_t job = 0;
  std::int64_t attempt = 0;  // SLURM_RESTART_COUNT
  std::vector<std::string> nodes;
  std::filesystem::path attempts_file;
  std::filesystem::path log;
  std::filesystem::path checkpoints;  // folder; empty: unknown
  std::int64_t now = 0;               // seconds since 1970
};

// The value that a retry passes as --resume: the user's own, or `auto` if the job has written a checkpoint that must
// not be ignored.
enum class Resume : std::uint8_t { as_given, newest };

struct AttemptStart {
  std::optional<Refusal> refusal;  // set if the attempt must not begin
  Resume resume = Resume::as_given;
  std::string sentence;
};

// Writes the attempt's first line. If the previous attempt ended without a last line, writes that line too. A file that
// cannot be read or written causes a warning and never fails an attempt. `stop_request`: a request made before this
// attempt.
AttemptStart begin_attempt(const AttemptContext& context, const RetryPolicy& policy, StopRequest stop_request);

struct AttemptEnd {
  Finding finding;
  Decision decision;
};
// Writes the attempt's last line. Fills in the fields of `facts` and `conditions` that follow from the attempt, its log
// and its checkpoints.
AttemptEnd end_attempt(const AttemptContext& context, AttemptFacts facts, const RetryRules& rules,
                       AttemptConditions conditions, const RetryPolicy& policy, double jitter);

}  // namespace lockstep
