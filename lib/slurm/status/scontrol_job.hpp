// A job as `scontrol show job` tells of it, and its number as people write it. The words are of unknown origin: a job's
// name may hold anything.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

// 17, or 6_1: task 1 of the array 6. A component of a heterogeneous job, 20+1, stands for the job, 20.
struct JobNumber {
  std::int64_t job = 0;
  std::optional<std::int64_t> task;

  bool operator==(const JobNumber&) const = default;
};
std::optional<JobNumber> parse_job_number(std::string_view text);
std::string format_job_number(const JobNumber& number);  // as scontrol takes it: "17", "6_1"

struct ScontrolJob {
  std::int64_t id = 0;     // under which a task of an array writes its files, too
  std::int64_t array = 0;  // 0: of none
  std::string task;        // in the array; of those that wait, several: "2-4%2"
  std::int64_t whole = 0;  // the number of the heterogeneous job that this is a component of; 0: of none
  std::string state;       // "RUNNING"
  std::string name;
  std::string reason;                    // why it waits
  std::string preempted;                 // since when its nodes are wanted back; empty: they are not
  std::optional<std::int64_t> restarts;  // how many times it was put back
  std::filesystem::path log;             // StdOut
  std::filesystem::path folder;          // WorkDir
};

struct ScontrolAnswer {
  enum class Kind : std::uint8_t {
    jobs,       // at least one
    unknown,    // Slurm knows no such job (any more)
    no_answer,  // it could not be asked
  };
  Kind kind = Kind::no_answer;
  std::vector<ScontrolJob> jobs;  // tasks of an array, components of a heterogeneous job, or the job
};
// Of all that scontrol printed, its errors included. Never throws.
ScontrolAnswer parse_scontrol(const std::string& text);
// Of Slurm, which gets ten seconds to answer. Never throws.
ScontrolAnswer ask_scontrol(const JobNumber& number);

// Whether Slurm is ending the job, or has ended it: what runs in it is told so by SIGTERM.
bool is_being_ended(const ScontrolJob& job);

}  // namespace lockstep
