// The state behind the simulated libraries: devices, streams, events and the errors that CUDA keeps.
//
// What CUDA's reference leaves open is decided against the caller: cudaFree, cudaFreeHost and the destruction of
// streams do not wait for queued work.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <vector>

#include "support/simulated_gpu/capture.hpp"
#include "support/simulated_gpu/memory.hpp"
#include "support/simulated_gpu/schedule.hpp"
#include "support/simulated_gpu/settings.hpp"

namespace lockstep::simulated {

struct Stream {
  int device;
  Lane lane;
  WorkHandle tail;
  CaptureHandle capture;  // null: work is queued
  Ends ends;              // of the capture
  bool began_capture = false;
};

struct Event {
  int device;
  bool is_timed;
  WorkHandle work;        // null: never recorded
  CaptureHandle capture;  // of the last record; null if that was queued
  Ends ends;
  std::shared_ptr<double> milliseconds;  // of the last record, on the simulated clock
};

class Gpu {
 public:
  explicit Gpu(const Settings& settings);
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;
  ~Gpu();  // with all that nobody destroyed

  const Settings& settings() const { return settings_; }
  Memory& memory() { return memory_; }
  Schedule& schedule() { return schedule_; }
  // Time passes with the work: microseconds of a real GPU, roughly.
  double milliseconds() const { return milliseconds_; }
  void spend(double milliseconds) { milliseconds_ += milliseconds; }

  Stream* find(cudaStream_t stream) const;
  Event* find(cudaEvent_t event) const;
  std::set<Stream*>& streams() { return streams_; }
  std::set<Event*>& events() { return events_; }
  std::set<Graph*>& graphs() { return graphs_; }
  std::set<ReadyGraph*>& ready_graphs() { return ready_graphs_; }

  // Queues or captures work of the stream.
  cudaError_t queue(cudaStream_t stream, Run run, const ConditionHandle& condition = nullptr);
  // Whether this thread may call what could wait for the device. If it captures, its captures are lost.
  bool may_wait();
  // An error of work that has run. No later call of the device succeeds.
  cudaError_t lost_error(int device) const { return lost_.at(static_cast<std::size_t>(device)); }

 private:
  void run_guarded(Work& work);
  Run with_traffic(std::int64_t number, Run run);

  Settings settings_;
  Memory memory_;
  Schedule schedule_;
  std::vector<cudaError_t> lost_;
  std::set<Stream*> streams_;
  std::set<Event*> events_;
  std::set<Graph*> graphs_;
  std::set<ReadyGraph*> ready_graphs_;
  double milliseconds_ = 0;
  std::int64_t works_ = 0;  // queued or captured so far
};

// Lives as long as the process. Calls hold `mutex()`.
Gpu& gpu();
std::recursive_mutex& mutex();
// A new GPU in the place of the old one, whose handles become invalid. Between tests.
void reset(const Settings& settings);

int current_device();
void set_current_device(int device);
cudaError_t& last_error();  // of this thread

// Every function of the runtime is such a call: one at a time, refused once the device is lost, its error kept.
template <typename Act>
cudaError_t call(const Act& act) {
  const std::lock_guard lock(mutex());
  cudaError_t code = gpu().lost_error(current_device());
  if (code == cudaSuccess) code = act();
  gpu().schedule().advance();
  if (code != cudaSuccess) last_error() = code;
  return code;
}

}  // namespace lockstep::simulated
