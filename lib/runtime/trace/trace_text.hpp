// Conversion of all ranks' spans to Chrome's JSON trace format, which Perfetto and chrome://tracing open ("Trace Event
// Format", object form: complete events and metadata).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/trace/clock_offset.hpp"
#include "runtime/trace/span_log.hpp"

namespace lockstep {

struct RankSpans {
  std::string host;
  std::vector<Span> spans;
  std::uint64_t lost = 0;  // number of earlier spans that were dropped
  ClockOffset first;
  ClockOffset last;
};

// Serialization between ranks of one program.
std::string packed(const RankSpans& rank);
RankSpans unpacked(const std::string& bytes);

// `ranks` is in rank order. Times are relative to the first span, on rank 0's clock.
std::string trace_text(std::span<const RankSpans> ranks);

}  // namespace lockstep
