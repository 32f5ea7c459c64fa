// The exit status of another process of this node, which the kernel reports to its parent only.
#pragma once

#include <optional>

namespace lockstep {

// In waitpid()'s encoding. Nothing while the process runs, or if the kernel does not report it: the parent has already
// collected the status, and the kernel is older than 6.15. `pidfd` may be -1.
std::optional<int> status_of_ended(int process, int pidfd);

}  // namespace lockstep
