// Work that every step queues in the same way: captured once, then replayed if the device supports it.
#pragma once

#include <functional>
#include <memory>

namespace lockstep {

class CapturedGraph {
 public:
  virtual ~CapturedGraph() = default;

  // Queues what `work` queues (stream-ordered). A GPU calls `work` the first time, captures it into a graph the second
  // time, and then replays the graph without calling `work`.
  //
  // So `work` must queue the same calls on the same memory in every call. It must not wait, and must not leave anything
  // on the host that a later step needs. Values that change between steps are read from device memory. Memory that
  // `work` takes from the arena and returns belongs to the graph while it runs. So all memory in use during a replay
  // must have been in use during the capture.
  virtual void run(const std::function<void()>& work) = 0;
};

// Calls `work` every time.
std::unique_ptr<CapturedGraph> make_uncaptured_graph();

}  // namespace lockstep
