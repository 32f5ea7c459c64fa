#include "machine/fma_peak.hpp"

#include <immintrin.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "device/cpu/threads/parallel.hpp"
#include "device/cpu/threads/threads.hpp"
#include "machine/process_facts.hpp"
#include "machine/vectors.hpp"

namespace lockstep {
namespace {

constexpr std::int64_t steps = 200'000;
constexpr int chains = 10;  // independent: enough to hide the latency, few enough for 16 registers
constexpr std::int64_t tile_steps = steps / 4;

// Returns a value that depends on every product, so that the compiler removes none.
template <typename Vector>
[[gnu::always_inline]] inline float multiply_add(float seed) {
  Vector sums[chains];
#pragma GCC unroll 16
  for (int i = 0; i < chains; ++i) sums[i] = Vector{} + seed * static_cast<float>(i);
  const Vector factor = Vector{} + (1 - seed);
  const Vector addend = Vector{} + seed;
  for (std::int64_t step = 0; step < steps; ++step) {
#pragma GCC unroll 16
    for (Vector& sum : sums) sum = sum * factor + addend;
  }
  Vector total{};
#pragma GCC unroll 16
  for (const Vector& sum : sums) total += sum;
  return total[0];
}

}  // namespace

// In the namespaces of their instruction sets, like all code with wide vectors.
namespace cpu {
namespace baseline {
float multiply_add_chains(float seed) { return multiply_add<Float4>(seed); }
}  // namespace baseline
namespace avx2 {
[[gnu::target("avx2,fma")]] float multiply_add_chains(float seed) { return multiply_add<ChannelVector>(seed); }
}  // namespace avx2
namespace avx512 {
[[gnu::target("avx2,fma,avx512f")]] float multiply_add_chains(float seed) { return multiply_add<Sixteen>(seed); }
}  // namespace avx512
namespace avx512_bf16 {
[[gnu::target("avx2,fma,avx512f,avx512bf16")]] float multiply_add_chains(float seed) {
  __m512 sums[chains];
#pragma GCC unroll 16
  for (int i = 0; i < chains; ++i) sums[i] = _mm512_set1_ps(seed * static_cast<float>(i));
  const auto factors = reinterpret_cast<__m512bh>(_mm512_set1_ps(seed));
  for (std::int64_t step = 0; step < steps; ++step) {
#pragma GCC unroll 16
    for (__m512& sum : sums) sum = _mm512_dpbf16_ps(sum, factors, factors);
  }
  __m512 total = _mm512_setzero_ps();
#pragma GCC unroll 16
  for (const __m512& sum : sums) total += sum;
  return total[0];
}
}  // namespace avx512_bf16
namespace amx_bf16 {
// Uses four tiles, which hide an instruction's latency. Each has 16 rows of 16 pairs by 16 columns.
[[gnu::target("amx-tile,amx-bf16")]] float multiply_add_chains(float seed) {
  struct {
    std::uint8_t palette = 1;
    std::uint8_t unused[15] = {};
    std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64};
    std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16};
  } const shapes;
  float values[16 * 16];
  std::fill(std::begin(values), std::end(values), seed);
  asm volatile("ldtilecfg %0" ::"m"(shapes));
  asm volatile("tileloadd (%0, %1, 1), %%tmm4" ::"r"(values), "r"(std::int64_t{64}) : "memory");
  asm volatile("tileloadd (%0, %1, 1), %%tmm5" ::"r"(values), "r"(std::int64_t{64}) : "memory");
  asm volatile("tilezero %tmm0\n tilezero %tmm1\n tilezero %tmm2\n tilezero %tmm3");
  for (std::int64_t step = 0; step < tile_steps; ++step) {
    asm volatile(
        "tdpbf16ps %tmm5, %tmm4, %tmm0\n tdpbf16ps %tmm5, %tmm4, %tmm1\n"
        "tdpbf16ps %tmm5, %tmm4, %tmm2\n tdpbf16ps %tmm5, %tmm4, %tmm3");
  }
  asm volatile("tilestored %%tmm0, (%0, %1, 1)" ::"r"(values), "r"(std::int64_t{64}) : "memory");
  asm volatile("tilerelease");
  return values[0];
}
}  // namespace amx_bf16
}  // namespace cpu

double fma_peak(cpu::InstructionSet set, int threads, DType features) {
  constexpr int rounds = 20;
  struct Chains {
    float (*run)(float seed);
    double products;  // per run
  };
  const auto of_vectors = [](float (*run)(float), int width) {
    return Chains{run, static_cast<double>(chains * steps) * width};
  };
  const bool is_of_pairs = features == DType::bf16 && cpu::multiplies_bf16(set);
  const Chains used = is_of_pairs && cpu::multiplies_bf16_tiles(set)
                          ? Chains{cpu::amx_bf16::multiply_add_chains, 4.0 * tile_steps * 16 * 16 * 32}
                      : is_of_pairs                        ? of_vectors(cpu::avx512_bf16::multiply_add_chains, 32)
                      : set >= cpu::InstructionSet::avx512 ? of_vectors(cpu::avx512::multiply_add_chains, 16)
                      : set == cpu::InstructionSet::avx2   ? of_vectors(cpu::avx2::multiply_add_chains, 8)
                                                           : of_vectors(cpu::baseline::multiply_add_chains, 4);
  threads = std::min(threads, cpu::observe_cores(1).allowed_cores);  // more threads share cores without computing more
  double best = 0;
  for (int round = 0; round < rounds; ++round) {
    std::vector<double> rates(static_cast<std::size_t>(threads));
    cpu::on_each_thread(threads, [&](int thread) {
      const double start = work_seconds(1);  // CPU time of the thread: all threads run at once, whatever else runs
      volatile float kept = 1e-6F;
      kept = used.run(kept);
      rates[static_cast<std::size_t>(thread)] = 2e-9 * used.products / (work_seconds(1) - start);
    });
    best = std::max(best, std::reduce(rates.begin(), rates.end()));
  }
  return best;
}

}  // namespace lockstep
