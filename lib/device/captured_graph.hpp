// Work that a step queues in the same way every time: recorded once, then repeated, where the device can.
#pragma once

#include <functional>
#include <memory>

namespace lockstep {

class CapturedGraph {
 public:
  virtual ~CapturedGraph() = default;

  // Queues what `work` queues (stream-ordered). A GPU calls it the first time, records it into a graph the second time,
  // and from then on repeats the graph without calling it. So `work` must queue the same calls on the same memory
  // whenever it is called, wait for nothing, and leave nothing on the host that a later step needs. What changes from
  // step to step is read from device memory. Memory that `work` takes from the arena and gives back belongs to the
  // captured graph while it runs: whatever is in use during a run must have been in use when it was recorded.
  virtual void run(const std::function<void()>& work) = 0;
};

// Calls `work` every time.
std::unique_ptr<CapturedGraph> make_uncaptured_graph();

}  // namespace lockstep
