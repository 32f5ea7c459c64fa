// Slurm's compact node lists, such as "gpu[001-004,7],login". Slurm calls them hostlist expressions; see `scontrol show
// hostnames` in `man scontrol`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

// No cluster has more nodes. A longer list is a mistake or an attack.
inline constexpr std::size_t max_nodes = 100'000;

// Returns the nodes in list order, including duplicates: gpu001 gpu002 gpu003 gpu004 gpu7 login. Keeps leading zeros.
// Several brackets in a name multiply (r[1-2]n[1-2]). Throws Error(bad_data) if the text is not a node list, has more
// than max_nodes entries, or contains an invalid host name. Valid names contain only letters, digits, '-', '_' and
// '.', so they are safe in any command.
std::vector<std::string> expand_node_list(std::string_view list);

}  // namespace lockstep
