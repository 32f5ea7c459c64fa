// What whoever submits a job gives sbatch beside its script.
#pragma once

#include <string>
#include <vector>

namespace lockstep {

struct SbatchChoices {
  std::string time;                  // of --time; empty: none
  std::vector<std::string> options;  // as they are: "--exclusive", "--mail-user=me"
};

// Words for sbatch: what counts more stands later. Throws Error(usage) for what is no time, no option, or an option by
// which sbatch would not submit the script that it is given.
std::vector<std::string> sbatch_arguments(const std::string& partition, const SbatchChoices& choices);

// Adds a word to the job's comment, or makes it the comment.
void add_comment(std::vector<std::string>& words, const std::string& word);
// Whether a word names the cluster that sbatch, squeue and scancel speak to.
bool names_cluster(const std::string& word);

// Whether one of them makes an array of the job.
bool makes_array(const SbatchChoices& choices);

// Whether one of them is a time limit; without one `not_a_time_message` are due.
bool states_time(const SbatchChoices& choices);
inline constexpr const char* not_a_time_message =
    "no time limit is stated (--time): that of SBATCH_TIMELIMIT holds, or else the partition's default.";

}  // namespace lockstep
