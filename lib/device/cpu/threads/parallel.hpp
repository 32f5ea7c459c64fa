// Loops over the threads of a rank. The cut into pieces is the caller's and depends on the shape alone, so no result
// depends on the number of threads, nor on which of them computes a piece.
//
// Each thread has a share of the pieces, the same in every loop of as many: what it has in its cache, it finds there
// again. A thread that is done with its own takes from the others' shares, so that a core which is slower or taken away
// holds up a loop by no more than what it is at.
//
// Every host thread that calls has helpers of its own, started when they are first needed. Between loops they look out
// for the next one for a short while, so that a loop costs about a microsecond; then they sleep, so that ranks and
// loaders on the same cores are not held up. Bodies may not throw, nor run loops themselves.
#pragma once

#include <algorithm>
#include <cstdint>

namespace lockstep::cpu {

// Threads that compute the loops of the calling host thread which name no number; 1 until it is set.
int loop_threads();
void set_loop_threads(int threads);

// Calls run(data, thread) on every thread of [0, threads), 0 being the calling one, and waits for all.
// Throws Error(other) where the system gives no more threads.
void run_on_threads(int threads, void (*run)(void* data, int thread), void* data);

// Some pieces, by the thread that has taken them.
using PiecesBody = void (*)(void* data, int thread, std::int64_t first, std::int64_t last);

// Calls run(data, thread, first, last) for consecutive runs of [0, count), each of `at_once` pieces, the last of what
// is left. Throws as run_on_threads.
void run_pieces(int threads, std::int64_t count, std::int64_t at_once, PiecesBody run, void* data);

// body(thread), once on each.
template <typename Body>
void on_each_thread(int threads, const Body& body) {
  run_on_threads(
      threads, [](void* data, int thread) { (*static_cast<const Body*>(data))(thread); }, const_cast<Body*>(&body));
}

// body(thread, first, last) for consecutive runs of [0, count). What runs at the same time has different threads, of
// [0, threads): places of scratch memory.
template <typename Body>
void parallel_runs(int threads, std::int64_t count, std::int64_t at_once, const Body& body) {
  if (threads == 1 || count <= at_once) {
    if (count > 0) body(0, std::int64_t{0}, count);
    return;
  }
  run_pieces(
      threads, count, at_once,
      [](void* data, int thread, std::int64_t first, std::int64_t last) {
        (*static_cast<const Body*>(data))(thread, first, last);
      },
      const_cast<Body*>(&body));
}

// To be taken together: few enough for the end of a loop to be shared evenly, and worth an atomic addition.
constexpr std::int64_t pieces_at_once(int threads, std::int64_t count) {
  constexpr std::int64_t runs_each = 16;
  return std::max<std::int64_t>(1, count / (runs_each * threads));
}

// body(thread, i) for every i of [0, count).
template <typename Body>
void parallel_pieces(int threads, std::int64_t count, const Body& body) {
  parallel_runs(threads, count, pieces_at_once(threads, count), [&](int thread, std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) body(thread, i);
  });
}

// body(i) for every i of [0, count).
template <typename Body>
void parallel_for(int threads, std::int64_t count, const Body& body) {
  parallel_pieces(threads, count, [&](int /*thread*/, std::int64_t i) { body(i); });
}

// body(first, last) for consecutive parts of [0, count), of cheap elements: short loops stay on the calling thread.
template <typename Body>
void parallel_parts(int threads, std::int64_t count, const Body& body) {
  constexpr std::int64_t least = 4096;
  parallel_runs(threads, count, std::max(pieces_at_once(threads, count), least),
                [&](int /*thread*/, std::int64_t first, std::int64_t last) { body(first, last); });
}

}  // namespace lockstep::cpu
