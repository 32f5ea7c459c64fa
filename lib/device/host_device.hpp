// Arithmetic that runs on the host and on a GPU, and the macro that marks it. On a GPU, each function is one
// instruction: conversions between fp32 and half precision and from double to integer, which round to nearest, ties to
// even, and keep NaN; the clock; a release store to host memory.
#pragma once

#include <atomic>
#include <bit>
#include <chrono>
#include <cstdint>

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#define LOCKSTEP_HOST_DEVICE __host__ __device__
#else
#define LOCKSTEP_HOST_DEVICE
#endif

namespace lockstep {

LOCKSTEP_HOST_DEVICE inline float from_f16(std::uint16_t bits) {
#ifdef __CUDA_ARCH__
  return __half2float(__ushort_as_half(bits));
#else
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000U) << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1FU;
  const std::uint32_t fraction = bits & 0x3FFU;
  if (exponent == 0) {  // zero and subnormals: multiples of 2^-24
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(static_cast<float>(fraction) * 0x1p-24F));
  }
  const std::uint32_t wide_exponent = exponent == 31 ? 255 : exponent + 112;  // biases 15 and 127
  return std::bit_cast<float>(sign | wide_exponent << 23 | fraction << 13);
#endif
}

LOCKSTEP_HOST_DEVICE inline std::uint16_t to_f16(float value) {
#ifdef __CUDA_ARCH__
  return __half_as_ushort(__float2half_rn(value));
#else
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000U;
  const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
  constexpr std::uint32_t infinity = 0x7F800000U;
  constexpr std::uint32_t too_large = 0x47800000U;        // 2^16
  constexpr std::uint32_t smallest_normal = 0x38800000U;  // 2^-14
  if (magnitude > infinity) return static_cast<std::uint16_t>(sign | 0x7E00U);
  if (magnitude >= too_large) return static_cast<std::uint16_t>(sign | 0x7C00U);
  if (magnitude < smallest_normal) {
    // Near 0.5, fp32 has steps of 2^-24, like the subnormals of f16. So the addition rounds.
    const auto sum = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5F);
    return static_cast<std::uint16_t>(sign | (sum - std::bit_cast<std::uint32_t>(0.5F)));
  }
  const std::uint32_t rounded = magnitude - (112U << 23) + 0xFFFU + ((magnitude >> 13) & 1U);
  return static_cast<std::uint16_t>(sign | rounded >> 13);
#endif
}

LOCKSTEP_HOST_DEVICE inline float from_bf16(std::uint16_t bits) {
#ifdef __CUDA_ARCH__
  return __bfloat162float(__ushort_as_bfloat16(bits));
#else
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
#endif
}

LOCKSTEP_HOST_DEVICE inline std::uint16_t to_bf16(float value) {
#ifdef __CUDA_ARCH__
  return __bfloat16_as_ushort(__float2bfloat16_rn(value));
#else
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = bits + 0x7FFFU + ((bits >> 16) & 1U);
  const bool is_nan = (bits & 0x7FFFFFFFU) > 0x7F800000U;
  return static_cast<std::uint16_t>((is_nan ? bits | 0x400000U : rounded) >> 16);
#endif
}

// For |value| < 2^63. x86 processors before AVX-512 convert one value at a time; compilers vectorize these additions
// and shifts.
LOCKSTEP_HOST_DEVICE inline std::int64_t round_to_int64(double value) {
#ifdef __CUDA_ARCH__
  return __double2ll_rn(value);
#else
  // Adding this to a double below 2^51 in magnitude leaves no fraction bits. The increase of its bit pattern is the
  // integer.
  constexpr double no_fraction = 0x1.8p52;
  const auto bits_of_whole = [=](double of) {
    return std::bit_cast<std::uint64_t>(of + no_fraction) - std::bit_cast<std::uint64_t>(no_fraction);
  };
  const double high = (value * 0x1p-32 + no_fraction) - no_fraction;
  const double low = value - high * 0x1p32;  // exact, and at most 2^31 in magnitude
  return static_cast<std::int64_t>((bits_of_whole(high) << 32) + bits_of_whole(low));
#endif
}

// A clock of the processor that runs this. A GPU's clock starts at an arbitrary time.
LOCKSTEP_HOST_DEVICE inline std::uint64_t clock_ns() {
#ifdef __CUDA_ARCH__
  std::uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
#else
  return static_cast<std::uint64_t>(
      std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count());
#endif
}

// Release store to host memory. A reader that acquires `value` sees all earlier stores of this thread.
LOCKSTEP_HOST_DEVICE inline void store_release(std::uint64_t& place, std::uint64_t value) {
#ifdef __CUDA_ARCH__
  asm volatile("st.release.sys.u64 [%0], %1;" ::"l"(&place), "l"(value) : "memory");
#else
  std::atomic_ref(place).store(value, std::memory_order_release);
#endif
}

}  // namespace lockstep
