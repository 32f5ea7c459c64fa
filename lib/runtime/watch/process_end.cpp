#include "runtime/watch/process_end.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <cstdint>
#include <sstream>
#include <string>

#include "base/error.hpp"
#include "base/io/file.hpp"

namespace lockstep {
namespace {

// Until the parent collects it: field 52 of /proc/PID/stat (proc(5), exit_code).
std::optional<int> status_of_zombie(int process) {
  try {
    constexpr std::size_t longest = 4096;
    const std::string text = read_live_file(fmt::format("/proc/{}/stat", process), longest);
    std::istringstream fields(text.substr(std::min(text.size(), text.rfind(')') + 1)));
    std::string field;
    fields >> field;  // field 3, the state
    if (field != "Z" && field != "X") return std::nullopt;
    for (int number = 4; number < 52; ++number) fields >> field;
    int status = 0;
    return fields >> status ? std::optional(status) : std::nullopt;
  } catch (const Error&) {
    return std::nullopt;
  }
}

// struct pidfd_info of linux/pidfd.h as Linux 6.15 has it, newer than the headers that we build with.
struct PidfdInfo {
  static constexpr std::uint64_t exit = 1U << 3;
  std::uint64_t mask;
  std::uint64_t control_group;
  std::uint32_t identities[11];
  std::int32_t exit_code;
};
static_assert(sizeof(PidfdInfo) == 64);

std::optional<int> status_of_collected(int pidfd) {
  PidfdInfo info{};
  info.mask = PidfdInfo::exit;
  constexpr int magic = 0xFF;
  constexpr int get_info = 11;
  if (::ioctl(pidfd, _IOWR(magic, get_info, PidfdInfo), &info) != 0 || (info.mask & PidfdInfo::exit) == 0) {
    return std::nullopt;
  }
  return info.exit_code;
}

}  // namespace

std::optional<int> status_of_ended(int process, int pidfd) {
  const std::optional<int> status = status_of_zombie(process);
  return status ? status : status_of_collected(pidfd);
}

}  // namespace lockstep
