// A job as `scontrol show job` prints it, and job numbers as users write them. The output is untrusted: a job's name
// may contain anything.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

// 17, or 6_1 for task 1 of array 6. 20+1, a component of a heterogeneous job, stands for job 20.
struct JobNumber {
  std::int64_t job = 0;
  std::optional<std::int64_t> task;

  bool operator==(const JobNumber&) const = default;
};
std::optional<JobNumber> parse_job_number(std::string_view text);
std::string format_job_number(const JobNumber& number);  // in scontrol's syntax: "17", "6_1"

struct ScontrolJob {
  std::int64_t id = 0;     // an array task names its files by it, too
  std::int64_t array = 0;  // 0: not in an array
  std::string task;        // in the array; several if they are pending: "2-4%2"
  std::int64_t whole = 0;  // number of the heterogeneous job that contains this component; 0: none
  std::string state;       // "RUNNING"
  std::string name;
  std::string reason;                    // why it is pending
  std::string preempted;                 // time of the preemption request; empty: none
  std::optional<std::int64_t> restarts;  // how many times it was requeued
  std::filesystem::path log;             // StdOut
  std::filesystem::path folder;          // WorkDir
};

struct ScontrolAnswer {
  enum class Kind : std::uint8_t {
    jobs,       // at least one
    unknown,    // Slurm does not know this job, or no longer
    no_answer,  // Slurm could not be asked
  };
  Kind kind = Kind::no_answer;
  std::vector<ScontrolJob> jobs;  // the job, or its array tasks or heterogeneous components
};
// Parses all of scontrol's output, including errors. Never throws.
ScontrolAnswer parse_scontrol(const std::string& text);
// Asks Slurm, with a timeout of ten seconds. Never throws.
ScontrolAnswer ask_scontrol(const JobNumber& number);

// Whether Slurm is ending the job or has ended it. Slurm sends SIGTERM to its processes in that case.
bool is_being_ended(const ScontrolJob& job);

}  // namespace lockstep
