// Empties the caches, for benchmarks of data that comes from memory in a training step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "device/cpu/threads/parallel.hpp"
#include "machine/memory_rates.hpp"

namespace lockstep {

class CacheFlush {
 public:
  // Writes more than the caches of all cores hold. Afterwards all threads are awake.
  void flush(int threads) {
    const std::int64_t bytes = std::ssize(memory_);
    cpu::on_each_thread(threads, [&](int thread) {
      const std::int64_t first = bytes * thread / threads;
      const std::int64_t last = bytes * (thread + 1) / threads;
      std::memset(memory_.data() + first, thread, static_cast<std::size_t>(last - first));
    });
  }

 private:
  std::vector<std::byte> memory_ = std::vector<std::byte>(static_cast<std::size_t>(4 * last_cache_bytes()));
};

}  // namespace lockstep
