// In a source of its own: compilers that see new and delete together take them for a mismatched pair.
#include "train/failing_allocation.hpp"

#include <algorithm>
#include <cstdlib>
#include <new>

namespace lockstep {

FailingAllocation failing_allocation;

bool FailingAllocation::fails(std::size_t bytes) {
  if (!is_armed || bytes < least_bytes || ::pthread_equal(::pthread_self(), thread) == 0) return false;
  const RankStatus& rank = rank_status::record();
  if (std::ranges::find(phases, rank.phase.load()) == phases.end() || rank.step < first_step) return false;
  is_armed = false;
  return true;
}

}  // namespace lockstep

void* operator new(std::size_t bytes) {
  if (lockstep::failing_allocation.fails(bytes)) throw std::bad_alloc();
  if (void* const memory = std::malloc(std::max(bytes, std::size_t{1}))) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
