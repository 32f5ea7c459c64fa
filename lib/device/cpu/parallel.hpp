// Loops over the threads of a rank. The cut into pieces is the caller's and depends on the shape alone, so no result
// depends on the number of threads.
#pragma once

#include <cstdint>

namespace lockstep::cpu {

template <typename Body>
void parallel_for(int threads, std::int64_t count, const Body& body) {
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1 && count > 1)
  for (std::int64_t i = 0; i < count; ++i) body(i);
}

}  // namespace lockstep::cpu
