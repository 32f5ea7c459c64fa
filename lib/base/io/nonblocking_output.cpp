#include "base/io/nonblocking_output.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <thread>

#include "base/io/descriptor.hpp"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;

bool has_room(int descriptor, std::chrono::milliseconds patience) {
  pollfd room{descriptor, POLLOUT, 0};
  constexpr std::chrono::milliseconds longest(1000);
  return ::poll(&room, 1, static_cast<int>(std::min(patience, longest).count())) > 0;
}

// Nonblocking writes that do not change the stream itself: other processes, such as the shell, share its flags. Each
// returns as write(2) does: EAGAIN if there is no room.
class Way {
 public:
  explicit Way(int descriptor)
      : descriptor_(descriptor), kind_(kind_of(descriptor)), opened_(opened_anew(descriptor, kind_)) {}

  ssize_t write(std::string_view text) const {
    if (opened_ >= 0) return ::write(opened_, text.data(), text.size());
    switch (kind_) {
      case Kind::socket:
        return ::send(descriptor_, text.data(), text.size(), MSG_DONTWAIT);
      case Kind::pipe:  // of another user. One that has any room has a page of it (pipe(7)).
        return write_where_room(text.substr(0, PIPE_BUF));
      case Kind::terminal:  // of another user
        return write_where_room(text.substr(0, 1));
      case Kind::other:
        break;
    }
    return ::write(descriptor_, text.data(), text.size());
  }

 private:
  enum class Kind { other, socket, pipe, terminal };

  static Kind kind_of(int descriptor) {
    struct stat about {};
    if (::fstat(descriptor, &about) != 0) return Kind::other;
    if (S_ISSOCK(about.st_mode)) return Kind::socket;
    if (S_ISFIFO(about.st_mode)) return Kind::pipe;
    return S_ISCHR(about.st_mode) && ::isatty(descriptor) == 1 ? Kind::terminal : Kind::other;
  }

  static Descriptor opened_anew(int descriptor, Kind kind) {
    if (kind != Kind::pipe && kind != Kind::terminal) return Descriptor(-1);
    const std::string path = fmt::format("/proc/self/fd/{}", descriptor);
    // careful-open: /proc/self/fd of an open stream
    return Descriptor(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  }

  ssize_t write_where_room(std::string_view text) const {
    if (has_room(descriptor_, std::chrono::milliseconds(0))) return ::write(descriptor_, text.data(), text.size());
    errno = EAGAIN;
    return -1;
  }

  int descriptor_;
  Kind kind_;
  Descriptor opened_;
};

}  // namespace

// Writes a line with one call if there is room, so that lines of different ranks do not mix.
int NonblockingOutput::push() {
  const Way way(descriptor_);
  std::size_t done = 0;
  int error_number = 0;
  while (done < kept_.size() && error_number == 0) {
    const ssize_t written = way.write(std::string_view(kept_).substr(done));
    if (written > 0) done += static_cast<std::size_t>(written);
    if (written == 0) error_number = ENOSPC;
    if (written < 0 && errno != EINTR) error_number = errno;
  }
  kept_.erase(0, error_number == 0 || error_number == EAGAIN ? done : kept_.size());
  return error_number;
}

std::string NonblockingOutput::gap_message() {
  return left_out_ == 0 ? "" : fmt::format("(lines left out here because they were not read in time: {})\n", left_out_);
}

int NonblockingOutput::write(std::string_view text) {
  if (has_pending()) push();
  const std::string next = gap_message().append(text);
  if (has_pending() && kept_.size() + next.size() > outlet_limit) {
    ++left_out_;
    return EAGAIN;
  }
  left_out_ = 0;
  kept_ += next;
  return push();
}

int NonblockingOutput::drain(const WriteTimeout& patience) {
  const Clock::time_point end = Clock::now() + patience.in_all;
  Clock::time_point progress = Clock::now();
  while (has_pending() || left_out_ > 0) {
    if (!has_pending()) {
      kept_ = gap_message();
      left_out_ = 0;
    }
    const std::size_t before = kept_.size();
    const int error_number = push();
    if (error_number != EAGAIN) {
      if (error_number != 0) return error_number;
      continue;
    }
    if (kept_.size() < before) progress = Clock::now();
    const Clock::time_point give_up = std::min(end, progress + patience.without_progress);
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(give_up - Clock::now());
    if (left.count() <= 0) return EAGAIN;
    has_room(descriptor_, left);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // terminals report room before they have it
  }
  return 0;
}

}  // namespace lockstep
