// Work that is captured into a graph instead of queued, and the graphs.
#pragma once

#include <cstddef>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "support/simulated_gpu/schedule.hpp"

namespace lockstep::simulated {

struct CapturedWork {
  std::vector<std::size_t> after;  // by index in the graph
  Run run;
  Lane lane;
  ConditionHandle condition;
};

using Ends = std::set<std::size_t>;  // the captured work that the next in a stream comes after

// What cudaGraph_t points to.
struct Graph {
  std::vector<CapturedWork> works;

  // Whether each piece of work is in `ends` or before one of them.
  bool all_lead_to(const Ends& ends) const;
};

// What cudaGraphExec_t points to.
struct ReadyGraph {
  std::vector<CapturedWork> works;
  WorkHandle last_launch;  // a graph's launches do not overlap
};

struct Capture {
  std::thread::id thread;
  bool is_valid = true;
  bool is_active = true;
  Graph graph;
};
using CaptureHandle = std::shared_ptr<Capture>;

}  // namespace lockstep::simulated
