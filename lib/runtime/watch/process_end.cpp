#include "runtime/watch/process_end.hpp"

#include <sys/ioctl.h>

#include <cstdint>

#include "base/process.hpp"

namespace lockstep {
namespace {

// struct pidfd_info of linux/pidfd.h in Linux 6.15, which is newer than the headers of our builds.
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
  const std::optional<ProcessStat> stat = process_stat(process);
  return stat && stat->end_status ? stat->end_status : status_of_collected(pidfd);
}

}  // namespace lockstep
