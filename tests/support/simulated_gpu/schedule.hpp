// The queued work of all streams, and the order in which it runs. Work forms a graph: it runs after the work before it
// in its stream and after the events that the stream waits for. A host thread that calls CUDA runs it, within the call.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <vector>

#include "support/simulated_gpu/settings.hpp"

namespace lockstep::simulated {

// Does the work; an error is the device's from then on.
using Run = std::function<cudaError_t()>;

enum class Lane : std::uint8_t { main, side };  // of a device's first stream; of its others

struct Work {
  std::vector<std::shared_ptr<Work>> after;
  Run run;
  int device;
  Lane lane;
  bool is_done = false;
};
using WorkHandle = std::shared_ptr<Work>;

class Schedule {
 public:
  // `run_guarded` runs the work in the state of the device that it uses.
  using RunGuarded = std::function<void(Work& work)>;
  Schedule(const Settings& settings, RunGuarded run_guarded);

  // `after` may hold null: no work.
  WorkHandle add(std::vector<WorkHandle> after, Run run, int device, Lane lane);
  // Runs `work` and what it comes after. Null: nothing.
  void finish(const WorkHandle& work);
  // Runs one piece of work that `work` needs, or `work`: a host that polls sees progress.
  void progress(const WorkHandle& work);
  // Runs what the order wants to run now. Called at the end of each call of CUDA.
  void advance();

 private:
  static bool is_ready(const Work& work);
  static WorkHandle open_before(const Work& work);  // null: none
  void run(const WorkHandle& work);
  void run_early();  // with that order: work of side streams that is ready
  void run_any();    // some work that is ready

  Order order_;
  RunGuarded run_guarded_;
  std::vector<WorkHandle> pending_;  // in the order of add()
  std::mt19937_64 random_;
};

}  // namespace lockstep::simulated
