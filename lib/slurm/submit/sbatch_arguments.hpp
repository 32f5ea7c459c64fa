// The sbatch arguments that the user adds to a job's script.
#pragma once

#include <string>
#include <vector>

namespace lockstep {

struct SbatchChoices {
  std::string time;                  // value of --time; empty: none
  std::vector<std::string> options;  // unchanged: "--exclusive", "--mail-user=me"
};

// The arguments of sbatch; later ones override earlier ones. Throws Error(usage) for an invalid time, a word that is
// not an option, or an option that keeps sbatch from submitting its script.
std::vector<std::string> sbatch_arguments(const std::string& partition, const SbatchChoices& choices);

// Adds a word to the job's comment, or makes it the comment.
void add_comment(std::vector<std::string>& words, const std::string& word);
// Whether sbatch exits with the job's code without a word of the job (--wait with --quiet).
bool waits_in_silence(const std::vector<std::string>& words);
// Whether a word selects the cluster for sbatch, squeue and scancel.
bool names_cluster(const std::string& word);
// Whether a word selects the partition for sbatch and sinfo.
bool names_partition(const std::string& word);
// Whether a word selects the events of which Slurm sends mail.
bool names_mail(const std::string& word);

// Whether an option turns the job into an array.
bool makes_array(const SbatchChoices& choices);

// Whether an option sets a time limit. If none does, print `no_time_limit_message`.
bool states_time(const SbatchChoices& choices);
inline constexpr const char* no_time_limit_message =
    "no time limit is set (--time). Slurm uses SBATCH_TIMELIMIT, or else the default of the partition.";

}  // namespace lockstep
