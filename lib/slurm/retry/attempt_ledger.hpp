// How an attempt begins and ends on paper: what job_attempt does for the scripts, without a word of Slurm's.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "slurm/retry/attempts_file.hpp"
#include "slurm/retry/decision.hpp"

namespace lockstep {

// One start of a job's script, and where its traces are.
struct AttemptPlace {
  std::int64_t job = 0;
  std::int64_t attempt = 0;  // SLURM_RESTART_COUNT
  std::vector<std::string> nodes;
  std::filesystem::path attempts_file;
  std::filesystem::path log;
  std::filesystem::path checkpoints;
  std::int64_t now = 0;  // seconds since 1970
};

// What a retry gives the program for --resume: what the user gave, or `auto`, where the job has written a checkpoint
// that must not be passed over.
enum class Resume : std::uint8_t { as_given, newest };

struct Beginning {
  std::optional<Refusal> refusal;  // why the attempt must not begin
  Resume resume = Resume::as_given;
  std::string sentence;
};

// Writes the attempt's first line, and the last one of an attempt before it that ended without a word. A file that
// cannot be read or written is told in a warning, and no attempt fails for it. `stop_request`: made before this
// attempt.
Beginning begin_attempt(const AttemptPlace& place, const RetryPolicy& policy, StopRequest stop_request);

struct AttemptEnd {
  Finding finding;
  Decision decision;
};
// Writes the attempt's last line. Of `facts` and `prospects` what the attempt, its log and its checkpoints tell is
// filled in here.
AttemptEnd end_attempt(const AttemptPlace& place, AttemptFacts facts, const RetryRules& rules, Prospects prospects,
                       const RetryPolicy& policy, double chance);

}  // namespace lockstep
