#include "slurm/roles/network_interfaces.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <array>
#include <memory>

namespace lockstep {
namespace {

struct FreeAddresses {
  void operator()(ifaddrs* list) const { ::freeifaddrs(list); }
};

}  // namespace

std::vector<std::string> network_interfaces() {
  std::vector<std::string> names;
  const std::unique_ptr<struct if_nameindex, void (*)(struct if_nameindex*)> list(::if_nameindex(), ::if_freenameindex);
  for (const struct if_nameindex* one = list.get(); one != nullptr && one->if_index != 0; ++one) {
    names.emplace_back(one->if_name);
  }
  return names;
}

std::string address_of_interface(const std::string& name) {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return "";
  const std::unique_ptr<ifaddrs, FreeAddresses> owner(list);
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET || name != one->ifa_name) continue;
    std::array<char, INET_ADDRSTRLEN> text{};
    const auto* address = reinterpret_cast<const sockaddr_in*>(one->ifa_addr);
    if (::inet_ntop(AF_INET, &address->sin_addr, text.data(), text.size()) != nullptr) return text.data();
  }
  return "";
}

}  // namespace lockstep
