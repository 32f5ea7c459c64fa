// What all CPU code shares: threads, memory and vector width.
//
// Layouts on the CPU, with B = `lanes` channels per block:
//   features      [n, h, w, c]     n, ceil(c/B), h, w, B     padding channels zero (oneDNN nChw8c, nChw16c)
//   images        [n, h, w, c]     n, c, h, w, fp32
//   conv weight   [o, i, r, s]     i <= 3: ceil(o/B), r, s, i, B; otherwise ceil(o/B), ceil(i/B), r, s, B, B: rows are
//                                  input channels, output channels are contiguous. Padding zero. See cpu_layout.hpp
//   linear weight [out, in]        as PyTorch
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "device/arena.hpp"
#include "device/tensor.hpp"

namespace lockstep::cpu {

enum class Verbosity : std::uint8_t { quiet, verbose };
enum class Convolutions : std::uint8_t { by_rule, direct };  // direct: Winograd is not used

// Owned by the device; all others hold a reference. Used by one host thread.
struct CpuContext {
  int threads;          // of this rank
  int lanes;            // channels per block: 16 with AVX-512, otherwise 8
  Arena& arena;         // tensors and scratch memory
  DType precision;      // of activations: f32 or bf16
  Verbosity verbosity;  // verbose: print the kernel of each layer and direction
  Convolutions convolutions = Convolutions::by_rule;
};

// Memory for the duration of one call.
inline Tensor scratch_tensor(Arena& arena, std::int64_t bytes) {
  return {arena.allocate(std::max(bytes, Arena::alignment)), Shape{bytes}, DType::u8, Layout::plain};
}

// Floats of several users, such as threads, in scratch memory. Offsets in bytes.
struct ScratchPlaces {
  float* of(std::byte* scratch, std::int64_t user) const {
    return reinterpret_cast<float*>(scratch + first + user * stride);
  }

  std::int64_t first, stride;
};

// Divides scratch memory into parts on separate cache lines. take() returns offsets in bytes.
class ScratchLayout {
 public:
  std::int64_t take(std::int64_t bytes) {
    const std::int64_t place = bytes_;
    bytes_ += whole_lines(bytes);
    return place;
  }
  std::int64_t take_floats(std::int64_t count) { return take(count * std::int64_t{sizeof(float)}); }
  // `count` floats for each of `users`, such as threads.
  ScratchPlaces take_floats_each(std::int64_t users, std::int64_t count) {
    const std::int64_t stride = whole_lines(count * std::int64_t{sizeof(float)});
    return {take(users * stride), stride};
  }
  std::int64_t bytes() const { return bytes_; }

 private:
  static constexpr std::int64_t whole_lines(std::int64_t bytes) {
    constexpr std::int64_t line = 64;
    return (bytes + line - 1) / line * line;
  }

  std::int64_t bytes_ = 0;
};

inline float* floats_at(std::byte* scratch, std::int64_t place) { return reinterpret_cast<float*>(scratch + place); }

}  // namespace lockstep::cpu
