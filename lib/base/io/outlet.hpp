// Text on its way to a standard stream. A terminal or a pipe may stand still (Ctrl-S, a pager, a launcher that is busy
// ending us): nobody waits for it. What finds no room is kept and goes out ahead of what is written later; beyond
// `outlet_limit` bytes whole texts are left out, and their number is written once there is room.
//
// Files, and what cannot be opened a second time (sockets, another user's terminal), are written to as they are.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

namespace lockstep {

inline constexpr std::size_t outlet_limit = std::size_t{1} << 20U;

class Outlet {
 public:
  explicit Outlet(int descriptor) : descriptor_(descriptor) {}

  // Both return an errno value, or 0; after an error nothing is kept. EAGAIN: text is still kept.
  int write(std::string_view text);
  int drain(std::chrono::milliseconds patience);  // waits so long for room; a negative time is forever

  bool stands_still() const { return !kept_.empty(); }

 private:
  int push();

  int descriptor_;
  std::string kept_;
  std::size_t left_out_ = 0;
};

}  // namespace lockstep
