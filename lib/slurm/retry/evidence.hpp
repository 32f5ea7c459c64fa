// Where the facts of an attempt are read: files of the job, of the training, and of this node's kernel. What is missing
// or is none of ours counts as not there, for a job must be able to end without it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "slurm/retry/attempt_facts.hpp"

namespace lockstep {

std::optional<ExitReport> read_exit_report(const std::filesystem::path& file);

// What stands after the first `from` bytes of a log, of that the last 64 KiB.
std::string read_log_tail(const std::filesystem::path& log, std::int64_t from);
std::int64_t bytes_of(const std::filesystem::path& file);  // 0: no such file

struct NewestCheckpoint {
  std::int64_t step = 0;
  std::int64_t written = 0;  // seconds since 1970
};
// By the names of the files in a folder of checkpoints (files/checkpoint/checkpoint_folder.hpp).
std::optional<NewestCheckpoint> newest_checkpoint(const std::filesystem::path& folder);

// How many processes of the job the kernel has killed for want of memory, on this node: from the job's control group,
// found by `groups`, the text of /proc/self/cgroup, below `root`, /sys/fs/cgroup. Both versions of control groups; 0
// where the job has no group of its own.
std::int64_t oom_kills(std::string_view groups, const std::filesystem::path& root, std::int64_t job);

}  // namespace lockstep
