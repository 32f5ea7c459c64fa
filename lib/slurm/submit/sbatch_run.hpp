// One call of sbatch, and whether it submitted a job.
#pragma once

#include <string>
#include <vector>

#include "slurm/submit/blocked_signals.hpp"
#include "slurm/submit/submission.hpp"

namespace lockstep {

// Runs `words`, which is sbatch or a program that execs it, with the script as standard input, and shows its output.
// `secrets` are those that the script reads; null: none. They are kept if the job was submitted: sbatch printed a job
// number, or squeue shows a job with their tag in its comment. Releases `signals` once that is known.
//
// Returns sbatch's exit code. Throws Error(usage) if no job was submitted.
int run_sbatch(std::vector<std::string> words, const std::string& script, SecretsFile* secrets,
               BlockedSignals& signals);

// "17" of "Submitted batch job 17 on cluster x", and of "17;x" (--parsable). Empty if the line names no job.
std::string job_in_line(const std::string& line);

}  // namespace lockstep
