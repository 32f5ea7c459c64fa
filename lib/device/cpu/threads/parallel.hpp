// Parallel loops over the threads of a rank. Callers split the work into pieces by shape alone, so no result depends on
// the number of threads, nor on which thread computes a piece.
//
// Each thread has a share of the pieces. It is the same in all loops with as many pieces, so a thread finds its data in
// its cache. A thread that is done takes pieces from other shares. So a slow or preempted core delays a loop by no more
// than its current piece.
//
// Every calling host thread has its own helper threads, started on first use. Between loops they poll for a short
// while, so a loop costs about a microsecond. Then they sleep, so they do not delay ranks and loaders on the same
// cores. Bodies must not throw and must not run loops.
#pragma once

#include <algorithm>
#include <cstdint>

namespace lockstep::cpu {

// Number of threads for loops of the calling host thread that name none. 1 until it is set.
int loop_threads();
void set_loop_threads(int threads);

// Calls run(data, thread) on every thread of [0, threads), where 0 is the calling one, and waits for all. Throws
// Error(other) if the system provides no more threads.
void run_on_threads(int threads, void (*run)(void* data, int thread), void* data);

// A range of pieces, run by the thread that took it.
using PiecesBody = void (*)(void* data, int thread, std::int64_t first, std::int64_t last);

// Calls run(data, thread, first, last) for consecutive runs of [0, count), each of `at_once` pieces; the last may be
// shorter. Throws like run_on_threads.
void run_pieces(int threads, std::int64_t count, std::int64_t at_once, PiecesBody run, void* data);

// body(thread), once on each thread.
template <typename Body>
void on_each_thread(int threads, const Body& body) {
  run_on_threads(
      threads, [](void* data, int thread) { (*static_cast<const Body*>(data))(thread); }, const_cast<Body*>(&body));
}

// body(thread, first, last) for consecutive runs of [0, count). Concurrent runs have different threads of [0, threads),
// so `thread` can index scratch memory.
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

// Pieces per run: few enough to balance the end of a loop, and enough to be worth an atomic addition.
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

// body(first, last) for consecutive parts of [0, count), for cheap elements. Short loops stay on the calling thread.
template <typename Body>
void parallel_parts(int threads, std::int64_t count, const Body& body) {
  constexpr std::int64_t least = 4096;
  parallel_runs(threads, count, std::max(pieces_at_once(threads, count), least),
                [&](int /*thread*/, std::int64_t first, std::int64_t last) { body(first, last); });
}

}  // namespace lockstep::cpu
