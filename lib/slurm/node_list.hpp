// Slurm's short form of a list of nodes: "gpu[001-004,7],login" (scontrol's "hostlist expression", see `man scontrol`,
// show hostnames).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

// No cluster has more; a longer list is a mistake or hostile.
inline constexpr std::size_t most_nodes = 100'000;

// The nodes in the order of the list, each as often as it is named: gpu001 gpu002 gpu003 gpu004 gpu7 login. Leading
// zeros are kept, several brackets in a name multiply (r[1-2]n[1-2]). Throws Error(bad_data) where the text is no such
// list, has more than most_nodes, or a name that no host can have (letters, digits, '-', '_' and '.' alone are taken,
// so that a name may stand in any command).
std::vector<std::string> expand_node_list(std::string_view list);

}  // namespace lockstep
