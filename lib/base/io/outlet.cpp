#include "base/io/outlet.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <thread>
#include <utility>

#include "base/io/descriptor.hpp"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;

// The same terminal or pipe, opened anew so that writes to it do not wait: to make `descriptor` itself so would change
// it for every process that shares it, the shell among them. A number of -1 where that cannot be done.
Descriptor unwaiting(int descriptor) {
  struct stat about {};
  const bool may_stand_still =
      ::fstat(descriptor, &about) == 0 && (S_ISFIFO(about.st_mode) || ::isatty(descriptor) == 1);
  if (!may_stand_still) return Descriptor(-1);
  const std::string path = fmt::format("/proc/self/fd/{}", descriptor);
  return Descriptor(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
}

}  // namespace

// One write for a line where there is room: lines of different ranks do not mix.
int Outlet::push() {
  const Descriptor way = unwaiting(descriptor_);
  while (!kept_.empty()) {
    const ssize_t written = ::write(way >= 0 ? way : descriptor_, kept_.data(), kept_.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      const int error_number = written < 0 ? errno : ENOSPC;
      if (error_number != EAGAIN) kept_.clear();
      return error_number;
    }
    kept_.erase(0, static_cast<std::size_t>(written));
    if (kept_.empty() && left_out_ > 0) {
      kept_ = fmt::format("(left out here, for nobody took them in time: {} lines)\n", std::exchange(left_out_, 0));
    }
  }
  return 0;
}

int Outlet::write(std::string_view text) {
  if (stands_still() && kept_.size() + text.size() > outlet_limit) push();
  if (stands_still() && kept_.size() + text.size() > outlet_limit) {
    ++left_out_;
    return EAGAIN;
  }
  kept_ += text;
  return push();
}

int Outlet::drain(std::chrono::milliseconds patience) {
  const bool forever = patience.count() < 0;
  const Clock::time_point end = Clock::now() + patience;
  while (stands_still()) {
    const int error_number = push();
    if (error_number != EAGAIN) return error_number;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
    if (!forever && left.count() <= 0) return EAGAIN;
    pollfd room{descriptor_, POLLOUT, 0};
    ::poll(&room, 1, forever ? -1 : static_cast<int>(left.count()));
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // terminals say that they have room before they do
  }
  return 0;
}

}  // namespace lockstep
