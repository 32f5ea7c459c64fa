// Spans of all ranks as a trace in Chrome's JSON format, which Perfetto and chrome://tracing open ("Trace Event
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
  std::uint64_t lost = 0;  // earlier ones
  ClockOffset first;
  ClockOffset last;
};

// As bytes between ranks of one program.
std::string packed(const RankSpans& rank);
RankSpans unpacked(const std::string& bytes);

// By rank. Times count from the first span, by rank 0's clock.
std::string trace_text(std::span<const RankSpans> ranks);

}  // namespace lockstep
