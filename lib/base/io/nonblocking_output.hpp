// Nonblocking output to a standard stream. A terminal, a pipe or a socket may stop reading (Ctrl-S, a pager, a launcher
// that is busy ending us). The program must not wait for it. Unwritten text is buffered and goes out before later text.
// Beyond `outlet_limit` bytes whole texts are dropped, and a line with their count replaces them.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

namespace lockstep {

inline constexpr std::size_t outlet_limit = std::size_t{1} << 20U;

// How long to wait until the stream accepts output.
struct WriteTimeout {
  std::chrono::milliseconds without_progress;
  std::chrono::milliseconds in_all;
};
inline constexpr WriteTimeout no_patience{std::chrono::milliseconds(0), std::chrono::milliseconds(0)};
inline constexpr WriteTimeout endless_patience{std::chrono::years(1), std::chrono::years(1)};

class NonblockingOutput {
 public:
  explicit NonblockingOutput(int descriptor) : descriptor_(descriptor) {}

  // Both return an errno value, or 0. EAGAIN: text is still buffered. After any other error the buffer is empty.
  int write(std::string_view text);
  int drain(const WriteTimeout& patience);

  bool has_pending() const { return !kept_.empty(); }

 private:
  int push();
  std::string gap_message();

  int descriptor_;
  std::string kept_;
  std::size_t left_out_ = 0;
};

}  // namespace lockstep
