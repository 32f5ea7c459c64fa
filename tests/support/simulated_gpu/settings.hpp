// How the simulated GPU behaves: from the environment of a program, or set by a test before its first call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace lockstep::simulated {

// When queued work runs. All orders are allowed by CUDA, so the results must be the same.
enum class Order : std::uint8_t {
  direct,  // at once, in the order of the calls
  late,    // only when the host waits for it, and only what it waits for; side streams last
  early,   // work of side streams as soon as its waits allow, work of the first stream late
  random,  // after each call, any work that may run, drawn with a seed
};

// A mistake that the simulation makes on purpose, in place of the library that uses it.
enum class Fault : std::uint8_t {
  none,
  missing_wait,       // cudaStreamWaitEvent orders nothing
  early_event,        // cudaEventSynchronize and cudaEventQuery report untimed events before they occur
  offset_memory,      // cudaMalloc returns addresses at odd multiples of 64 bytes
  freed_under_graph,  // frees the largest block of device memory once a graph is instantiated
  short_pinned,       // copies may use only half of the memory that cudaMallocHost returns
  wrong_stride,       // cuDNN takes tensors for NCHW
  unset_memory,       // cudaMemsetAsync does nothing
  kept_graph,         // cudaGraphExecDestroy does nothing
  detached_sum,       // later work of a stream does not wait for NCCL's operations
  left_out_sum,       // rank 1 leaves out its third operation of NCCL
};

struct Settings {
  Order order = Order::direct;
  Fault fault = Fault::none;
  std::uint64_t seed = 0;
  int devices = 2;
  bool notes_traffic = false;  // notes what each piece of work reads and writes (noted_line.hpp)
  std::size_t memory_bytes = (std::size_t{4} << 30) + (std::size_t{512} << 20);  // of each device; lib leaves 4 GiB
};

// From LOCKSTEP_GPU_ORDER (direct, late, early, random:SEED), LOCKSTEP_GPU_FAULT (the names above), and whether
// LOCKSTEP_GPU_TRAFFIC is set. Ends the program if it cannot read them.
Settings settings_of_environment();

}  // namespace lockstep::simulated
