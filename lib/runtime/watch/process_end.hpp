// How another process of this node ended, which only its parent is told.
#pragma once

#include <optional>

namespace lockstep {

// As waitpid() would give it; nothing while the process runs, or where the kernel does not say: its parent has
// collected it already and the kernel is older than 6.15. `pidfd` may be -1.
std::optional<int> status_of_ended(int process, int pidfd);

}  // namespace lockstep
