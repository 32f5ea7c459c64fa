// A wire that takes its time, made of two network devices: what comes at the one leaves at the other a while after it
// came, in the order in which it came.
//
//   delaying_relay MICROSECONDS NEAR:FAR...      one wire for each pair of devices; until SIGTERM
//
// Frames pass as the kernel has them, with what it left to a network card to do (virtio's header: checksums that are
// not computed, several segments in one piece). A wire that carries too much drops, as a switch does. At its end the
// relay says how many frames passed, and how late.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/io/descriptor.hpp"
#include "base/text/number.hpp"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t virtio_header = 10;  // virtio_net_hdr, whose own header C++ does not take
constexpr std::size_t largest_frame = virtio_header + ETH_HLEN + (std::size_t{1} << 16);
constexpr std::size_t max_waiting = std::size_t{8} << 20;  // bytes on a wire, one way

volatile std::sig_atomic_t is_over = 0;

void must(bool succeeded, std::string_view task) {
  require(succeeded, Failure::other, "cannot {}: {}", task, std::strerror(errno));
}

Descriptor open_device(const std::string& name) {
  Descriptor device(::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  must(device >= 0, "open a socket for frames (it takes root)");
  const int yes = 1;
  const int room = static_cast<int>(max_waiting);
  must(::setsockopt(device, SOL_PACKET, PACKET_VNET_HDR, &yes, sizeof yes) == 0, "ask for virtio's header");
  must(::setsockopt(device, SOL_PACKET, PACKET_IGNORE_OUTGOING, &yes, sizeof yes) == 0, "pass over frames that leave");
  must(::setsockopt(device, SOL_SOCKET, SO_TIMESTAMPNS, &yes, sizeof yes) == 0, "ask when frames came");
  must(::setsockopt(device, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room) == 0, "make room for frames");
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_protocol = htons(ETH_P_ALL);
  address.sll_ifindex = static_cast<int>(::if_nametoindex(name.c_str()));
  must(address.sll_ifindex != 0, "find the device " + name);
  must(::bind(device, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0, "listen at " + name);
  return device;
}

// By the kernel, for want of room: since it was last asked.
std::int64_t dropped_at(int device) {
  tpacket_stats counts{};
  socklen_t size = sizeof counts;
  must(::getsockopt(device, SOL_PACKET, PACKET_STATISTICS, &counts, &size) == 0, "ask for frames that were dropped");
  return counts.tp_drops;
}

// How long ago the kernel took the frame in.
Clock::duration age_of(msghdr& message) {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  for (cmsghdr* head = CMSG_FIRSTHDR(&message); head != nullptr; head = CMSG_NXTHDR(&message, head)) {
    if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_TIMESTAMPNS) continue;
    timespec came{};
    std::memcpy(&came, CMSG_DATA(head), sizeof came);
    return std::chrono::seconds(now.tv_sec - came.tv_sec) + std::chrono::nanoseconds(now.tv_nsec - came.tv_nsec);
  }
  return {};
}

struct Frame {
  Clock::time_point due;
  std::vector<char> bytes;
};

struct Tally {
  std::int64_t passed = 0;
  std::int64_t dropped = 0;
  Clock::duration late = {};  // of all that passed
  Clock::duration latest = {};
};

// One way of a wire.
class Lane {
 public:
  Lane(int from, int to, Clock::duration delay) : from_(from), to_(to), delay_(delay) {}

  int from() const { return from_; }
  Clock::time_point next_due() const { return frames_.empty() ? Clock::time_point::max() : frames_.front().due; }

  void take(std::span<char> buffer, Tally& tally) {
    while (true) {
      std::array<char, 128> control{};
      iovec piece{buffer.data(), buffer.size()};
      msghdr message{};
      message.msg_iov = &piece;
      message.msg_iovlen = 1;
      message.msg_control = control.data();
      message.msg_controllen = control.size();
      const ssize_t length = ::recvmsg(from_, &message, 0);
      if (length < 0) {
        must(errno == EAGAIN || errno == EINTR || errno == ENETDOWN, "take a frame");
        return;
      }
      const auto size = static_cast<std::size_t>(length);
      if (waiting_ + size > max_waiting) {
        ++tally.dropped;
        continue;
      }
      waiting_ += size;
      frames_.push_back({Clock::now() - age_of(message) + delay_, {buffer.begin(), buffer.begin() + length}});
    }
  }

  void pass_due(Tally& tally) {
    while (!frames_.empty()) {
      const Clock::duration late = Clock::now() - frames_.front().due;
      if (late < Clock::duration::zero()) return;
      const std::vector<char>& bytes = frames_.front().bytes;
      if (::send(to_, bytes.data(), bytes.size(), 0) < 0) {
        ++tally.dropped;
      } else {
        ++tally.passed;
        tally.late += late;
        tally.latest = std::max(tally.latest, late);
      }
      waiting_ -= bytes.size();
      frames_.pop_front();
    }
  }

 private:
  int from_;
  int to_;
  Clock::duration delay_;
  std::deque<Frame> frames_;
  std::size_t waiting_ = 0;  // bytes
};

// Waits for a frame, for the first that is due, or for SIGTERM, which comes at no other place.
void wait_for(std::vector<pollfd>& devices, Clock::time_point due, const sigset_t& unblocked) {
  timespec rest{};
  const bool is_bounded = due != Clock::time_point::max();
  if (is_bounded) {
    const auto nanoseconds =
        std::max<std::chrono::nanoseconds>(due - Clock::now(), std::chrono::nanoseconds::zero()).count();
    rest = {nanoseconds / 1'000'000'000, nanoseconds % 1'000'000'000};
  }
  must(::ppoll(devices.data(), devices.size(), is_bounded ? &rest : nullptr, &unblocked) >= 0 || errno == EINTR,
       "wait for frames");
}

void relay(Clock::duration delay, std::span<char*> wires, const sigset_t& unblocked) {
  std::vector<Descriptor> devices;
  std::vector<Lane> lanes;
  for (const std::string_view wire : wires) {
    const std::size_t colon = wire.find(':');
    require(colon != std::string_view::npos, Failure::usage, "'{}' is no NEAR:FAR", wire);
    const int near = devices.emplace_back(open_device(std::string(wire.substr(0, colon))));
    const int far = devices.emplace_back(open_device(std::string(wire.substr(colon + 1))));
    lanes.emplace_back(near, far, delay);
    lanes.emplace_back(far, near, delay);
  }
  std::vector<pollfd> polled;
  for (const Lane& lane : lanes) polled.push_back({lane.from(), POLLIN, 0});
  fmt::print("ready\n");
  std::fflush(stdout);

  Tally tally;
  std::vector<char> buffer(largest_frame);
  while (is_over == 0) {
    Clock::time_point due = Clock::time_point::max();
    for (const Lane& lane : lanes) due = std::min(due, lane.next_due());
    wait_for(polled, due, unblocked);
    for (std::size_t i = 0; i < lanes.size(); ++i) {
      if (polled[i].revents != 0) lanes[i].take(buffer, tally);
      lanes[i].pass_due(tally);
    }
  }
  for (const Lane& lane : lanes) tally.dropped += dropped_at(lane.from());
  using Milliseconds = std::chrono::duration<double, std::milli>;
  fmt::print("{} frames passed, {} dropped; on average {:.3f} ms late, at most {:.1f}\n", tally.passed, tally.dropped,
             tally.passed == 0 ? 0 : Milliseconds(tally.late).count() / static_cast<double>(tally.passed),
             Milliseconds(tally.latest).count());
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  using namespace lockstep;
  const std::span<char*> words(argv, static_cast<std::size_t>(argc));
  sigset_t terminate;
  sigset_t unblocked;
  ::sigemptyset(&terminate);
  ::sigaddset(&terminate, SIGTERM);
  ::sigprocmask(SIG_BLOCK, &terminate, &unblocked);
  struct sigaction end {};
  end.sa_handler = [](int) { is_over = 1; };
  ::sigaction(SIGTERM, &end, nullptr);
  // Before ranks that look for messages all the time, where the system allows it.
  ::prctl(PR_SET_TIMERSLACK, 1);
  const sched_param first{.sched_priority = 1};
  ::sched_setscheduler(0, SCHED_FIFO, &first);
  try {
    require(words.size() > 2, Failure::usage, "usage: delaying_relay MICROSECONDS NEAR:FAR...");
    const auto delay = parse_number<std::int64_t>(words[1], {0, 10'000'000});
    require(delay.has_value(), Failure::usage, "'{}' are no microseconds", words[1]);
    relay(std::chrono::microseconds(*delay), words.subspan(2), unblocked);
  } catch (const Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return error.exit_code();
  }
  return 0;
}
