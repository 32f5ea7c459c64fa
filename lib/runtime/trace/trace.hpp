// The trace of a training (--trace): what the main thread of each rank did and when, on one clock, in one file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "comm/communicator.hpp"
#include "runtime/trace/clock_offset.hpp"
#include "runtime/trace/span_log.hpp"
#include "runtime/watch/rank_status.hpp"

namespace lockstep {

// The number of spans that each rank keeps. Smaller for many ranks, because rank 0 collects all spans.
std::size_t spans_kept(int ranks);

class Trace {
 public:
  // Collective. Starts the trace. `world` must outlive it, `host` is this rank's. Throws Error(usage) if the folder
  // cannot be created.
  Trace(const Communicator& world, std::filesystem::path folder, std::string host);

  // Collective, call once. Rank 0 writes FOLDER/trace-STEPS.json, where `steps` is the number of steps done before the
  // training started. Warns if it cannot.
  void write(std::int64_t steps);

 private:
  const Communicator& world_;
  std::filesystem::path folder_;
  std::string host_;
  SpanLog spans_;
  ClockOffset first_;
  rank_status::SpanLogScope shown_;
};

}  // namespace lockstep
