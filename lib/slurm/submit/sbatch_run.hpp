// One call of sbatch, and whether Slurm has a job afterwards.
#pragma once

#include <string>
#include <vector>

#include "slurm/submit/held_signals.hpp"
#include "slurm/submit/submission.hpp"

namespace lockstep {

// Runs `words`, sbatch or what becomes it, with the script as its input, and shows what it prints. `secrets` are those
// that the script reads; null: none. They are kept if the job was submitted, which a number in sbatch's words shows, or
// a job in squeue with their tag in its comment. `signals` are released as soon as that is known.
//
// Returns sbatch's code. Throws Error(usage) where no job was submitted.
int run_sbatch(std::vector<std::string> words, const std::string& script, SecretsFile* secrets, HeldSignals& signals);

// "17" of "Submitted batch job 17 on cluster x", and of "17;x", as with --parsable; empty: the line names no job.
std::string job_in_line(const std::string& line);

}  // namespace lockstep
