// bfloat16: the upper half of an fp32 value.
#pragma once

#include <bit>
#include <cstdint>

namespace lockstep::cpu {

inline float from_bf16(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

// Rounds to nearest, ties to even. NaN stays NaN.
inline std::uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = bits + 0x7FFFU + ((bits >> 16) & 1U);
  const bool is_nan = (bits & 0x7FFFFFFFU) > 0x7F800000U;
  return static_cast<std::uint16_t>((is_nan ? bits | 0x400000U : rounded) >> 16);
}

}  // namespace lockstep::cpu
