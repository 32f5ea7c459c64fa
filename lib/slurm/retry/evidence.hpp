// Reads the facts of an attempt from the files of the job and the training, and from this node's kernel. Missing or
// invalid input counts as absent, because a job must be able to end without it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace lockstep {

// Returns the log after its first `from` bytes, at most the last 64 KiB.
std::string read_log_tail(const std::filesystem::path& log, std::int64_t from);
std::int64_t bytes_of(const std::filesystem::path& file);  // 0 if there is no such file

// Number of the job's processes that the kernel has killed on this node for lack of memory. Reads the job's control
// group, versions 1 and 2. `groups` is the text of /proc/self/cgroup, `root` is /sys/fs/cgroup. Returns 0 if the job
// has no control group of its own.
std::int64_t oom_kills(std::string_view groups, const std::filesystem::path& root, std::int64_t job);

}  // namespace lockstep
