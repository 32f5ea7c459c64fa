// Loops over the threads of a rank. The cut into pieces is the caller's and depends on the shape alone, so no result
// depends on the number of threads.
//
// Every host thread that calls has helpers of its own, started when they are first needed. Between loops they look out
// for the next one for a short while, so that a loop costs about a microsecond; then they sleep, so that ranks and
// loaders on the same cores are not held up. Bodies may not throw. Piece i is computed by the same helper in every loop
// of as many pieces: what it has in its cache, it finds there again.
#pragma once

#include <algorithm>
#include <cstdint>

namespace lockstep::cpu {

// Threads that compute the loops of the calling host thread which name no number; 1 until it is set.
int loop_threads();
void set_loop_threads(int threads);

// Calls run(data, share) for every share of [0, shares), share 0 on the calling thread, and waits for all.
// Throws Error(other) where the system gives no more threads.
void run_shares(int shares, void (*run)(void* data, int share), void* data);

// body(first, last) for consecutive parts of [0, count), one a thread.
template <typename Body>
void parallel_parts(int threads, std::int64_t count, const Body& body) {
  const auto shares = static_cast<int>(std::min<std::int64_t>(threads, count));
  if (shares <= 1) {
    if (count > 0) body(std::int64_t{0}, count);
    return;
  }
  auto part = [&](int share) { body(count * share / shares, count * (share + 1) / shares); };
  run_shares(
      shares, [](void* data, int share) { (*static_cast<decltype(part)*>(data))(share); }, &part);
}

// body(i) for every i of [0, count).
template <typename Body>
void parallel_for(int threads, std::int64_t count, const Body& body) {
  parallel_parts(threads, count, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) body(i);
  });
}

}  // namespace lockstep::cpu
