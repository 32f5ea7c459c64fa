#include "base/net/node_addresses.hpp"

#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <memory>

#include "base/process.hpp"

namespace lockstep {
namespace {

struct FreeInterfaces {
  void operator()(ifaddrs* list) const { ::freeifaddrs(list); }
};

// Empty if other nodes cannot use the address: the interface is down, or the address is link-local.
std::string numeric_address(const ifaddrs& entry) {
  if (entry.ifa_addr == nullptr || (entry.ifa_flags & IFF_UP) == 0) return "";
  const int family = entry.ifa_addr->sa_family;
  if (family != AF_INET && family != AF_INET6) return "";
  if (family == AF_INET6 &&
      IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(entry.ifa_addr)->sin6_addr) != 0) {
    return "";
  }
  std::array<char, NI_MAXHOST> text{};
  const socklen_t length = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  const int code = ::getnameinfo(entry.ifa_addr, length, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST);
  return code == 0 ? text.data() : "";
}

// Tests the address, not its interface: a loopback interface may also carry addresses that the network knows.
bool is_loopback(const std::string& address) { return address == "::1" || address.starts_with("127."); }

// A namespace's inode is unique only within one boot of one kernel, so the result includes the boot ID.
std::string network_of_this_process() {
  struct stat name_space {};
  if (::stat("/proc/thread-self/ns/net", &name_space) != 0) return "";
  const std::string kernel = boot_id();
  return kernel.empty() ? "" : fmt::format("{} {}", kernel, name_space.st_ino);
}

}  // namespace

NodeAddresses addresses_of_this_node() {
  NodeAddresses node{network_of_this_process(), {}};
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return node;
  const std::unique_ptr<ifaddrs, FreeInterfaces> owner(list);
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    std::string address = numeric_address(*entry);
    if (!address.empty()) node.addresses.push_back(std::move(address));
  }
  std::ranges::stable_partition(node.addresses, [](const std::string& address) { return !is_loopback(address); });
  return node;
}

std::vector<std::string> addresses_that_lead_to(const NodeAddresses& theirs, const NodeAddresses& own) {
  std::vector<std::string> leading = theirs.addresses;
  if (!theirs.network.empty() && theirs.network == own.network) return leading;
  std::erase_if(leading, [&](const std::string& address) {
    return is_loopback(address) || std::ranges::find(own.addresses, address) != own.addresses.end();
  });
  return leading;
}

}  // namespace lockstep
