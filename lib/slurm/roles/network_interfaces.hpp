// The network interfaces of this node.
#pragma once

#include <string>
#include <vector>

namespace lockstep {

std::vector<std::string> network_interfaces();  // by name: lo, eth0
// The interface's first IPv4 address, numeric; empty if it has none.
std::string address_of_interface(const std::string& name);

}  // namespace lockstep
