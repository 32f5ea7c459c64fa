// The trace of a training (--trace): what the main thread of each rank did when, by one clock, in one file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "comm/communicator.hpp"
#include "runtime/trace/clock_offset.hpp"
#include "runtime/trace/span_log.hpp"
#include "runtime/watch/rank_status.hpp"

namespace lockstep {

// Spans that each of so many ranks keeps: fewer where they are many, for rank 0 takes them all.
std::size_t spans_kept(int ranks);

class Trace {
 public:
  // Collective: begins. `world` outlives this. `host`: of this rank. Throws Error(usage) if the folder cannot be made.
  Trace(const Communicator& world, std::filesystem::path folder, std::string host);

  // Collective, once, of a training that began when `steps` were done: rank 0 writes FOLDER/trace-STEPS.json. Where it
  // cannot, it warns.
  void write(std::int64_t steps);

 private:
  const Communicator& world_;
  std::filesystem::path folder_;
  std::string host_;
  SpanLog spans_;
  ClockOffset first_;
  rank_status::ShownSpans shown_;
};

}  // namespace lockstep
