#include "machine/memory_rates.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <numeric>
#include <vector>

#include "device/cpu/threads/parallel.hpp"
#include "machine/process_facts.hpp"
#include "machine/vectors.hpp"

namespace lockstep {
namespace {

// The sum of all values, so that the compiler removes none. `bytes` is a multiple of `chains` vectors.
template <typename Vector>
[[gnu::always_inline]] inline float sum_of(const std::byte* first, std::int64_t bytes) {
  constexpr int chains = 8;
  Vector sums[chains] = {};
  const auto* vectors = reinterpret_cast<const Vector*>(first);
  for (std::int64_t left = bytes / std::int64_t{sizeof(Vector)}; left >= chains; left -= chains, vectors += chains) {
#pragma GCC unroll 16
    for (int i = 0; i < chains; ++i) sums[i] += vectors[i];
  }
  for (int i = 1; i < chains; ++i) sums[0] += sums[i];
  return sums[0][0];
}

}  // namespace

// In the namespaces of their instruction sets, like all code with wide vectors.
namespace cpu {
namespace baseline {
float sum_of_floats(const std::byte* first, std::int64_t bytes) { return sum_of<Float4>(first, bytes); }
}  // namespace baseline
namespace avx2 {
[[gnu::target("avx2,fma")]] float sum_of_floats(const std::byte* first, std::int64_t bytes) {
  return sum_of<ChannelVector>(first, bytes);
}
}  // namespace avx2
namespace avx512 {
[[gnu::target("avx2,fma,avx512f")]] float sum_of_floats(const std::byte* first, std::int64_t bytes) {
  return sum_of<Sixteen>(first, bytes);
}
}  // namespace avx512
}  // namespace cpu

namespace {

constexpr int rounds = 8;

std::int64_t cache_bytes(int name, std::int64_t usual) {
  const std::int64_t told = sysconf(name);
  return told > 0 ? told : usual;
}

// work(thread, times) moves `bytes` bytes `times` times. Returns GB/s of all threads together.
template <typename Work>
double best_rate(int threads, std::int64_t bytes, const Work& work) {
  constexpr std::int64_t round_bytes = 64 << 20;
  const std::int64_t times = std::max<std::int64_t>(1, round_bytes / bytes);
  double best = 0;
  for (int round = 0; round <= rounds; ++round) {
    std::vector<double> rates(static_cast<std::size_t>(threads));
    cpu::on_each_thread(threads, [&](int thread) {
      const double start = work_seconds(1);
      work(thread, times);
      rates[static_cast<std::size_t>(thread)] = 1e-9 * static_cast<double>(bytes * times) / (work_seconds(1) - start);
    });
    if (round > 0) best = std::max(best, std::reduce(rates.begin(), rates.end()));  // the first round loads pages
  }
  return best;
}

}  // namespace

std::int64_t last_cache_bytes() { return cache_bytes(_SC_LEVEL3_CACHE_SIZE, 32 << 20); }

MemoryRates memory_rates(cpu::InstructionSet set, int threads) {
  const auto sum = set >= cpu::InstructionSet::avx512 ? cpu::avx512::sum_of_floats
                   : set == cpu::InstructionSet::avx2 ? cpu::avx2::sum_of_floats
                                                      : cpu::baseline::sum_of_floats;
  constexpr std::int64_t alignment = 4096;
  const std::int64_t in_l2 = cache_bytes(_SC_LEVEL2_CACHE_SIZE, 512 << 10) / 2;
  const std::int64_t in_l3 = std::max(last_cache_bytes() / (4 * threads), 2 * in_l2);
  const std::int64_t in_memory = 4 * last_cache_bytes();
  std::vector<std::vector<std::byte>> memory(static_cast<std::size_t>(threads));
  cpu::on_each_thread(threads, [&](int thread) {
    memory[static_cast<std::size_t>(thread)].resize(static_cast<std::size_t>(in_memory + alignment));
  });
  const auto first_of = [&](int thread) {
    std::vector<std::byte>& bytes = memory[static_cast<std::size_t>(thread)];
    return bytes.data() + (alignment - reinterpret_cast<std::uintptr_t>(bytes.data()) % alignment) % alignment;
  };
  const auto read_rate = [&](std::int64_t bytes) {
    return best_rate(threads, bytes, [&](int thread, std::int64_t times) {
      volatile float kept = 0;
      for (std::int64_t time = 0; time < times; ++time) kept = kept + sum(first_of(thread), bytes);
    });
  };
  const double copy = best_rate(threads, in_memory, [&](int thread, std::int64_t times) {
    const std::int64_t half = in_memory / 2;
    for (std::int64_t time = 0; time < times; ++time) std::memcpy(first_of(thread), first_of(thread) + half, half);
  });
  return {read_rate(in_l2), read_rate(in_l3), read_rate(in_memory), copy};
}

}  // namespace lockstep
