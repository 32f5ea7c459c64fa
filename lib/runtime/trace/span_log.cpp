#include "runtime/trace/span_log.hpp"

#include <algorithm>

namespace lockstep {

std::vector<Span> SpanLog::spans() const {
  std::vector<Span> spans;
  const std::uint64_t kept = std::min<std::uint64_t>(added_, spans_.size());
  spans.reserve(kept);
  for (std::uint64_t i = added_ - kept; i < added_; ++i) spans.push_back(spans_[i % spans_.size()]);
  return spans;
}

}  // namespace lockstep
