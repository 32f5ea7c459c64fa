#include "runtime/trace/trace_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/text/json_text.hpp"
#include "runtime/watch/rank_status.hpp"

namespace lockstep {
namespace {

static_assert(std::is_trivially_copyable_v<Span> && std::is_trivially_copyable_v<ClockOffset>);

struct Head {
  std::uint64_t lost;
  ClockOffset first;
  ClockOffset last;
  std::uint64_t spans;
};

std::string_view name_of(const Span& span) {
  return span.what == Span::starting_sum ? "starting a sum" : describe(static_cast<Phase>(span.what));
}

std::string_view kind_of(const Span& span) {
  if (span.what == Span::starting_sum) return "sum";
  return waits_for_others(static_cast<Phase>(span.what)) ? "together" : "alone";
}

void add_name(std::string& text, std::size_t rank, const RankSpans& of) {
  const std::string name = json_text(fmt::format("rank {} on {}", rank, of.host));
  text += fmt::format(
      "{{\"ph\":\"M\",\"pid\":{0},\"tid\":0,\"name\":\"process_name\",\"args\":{{\"name\":{1}}}}},\n"
      "{{\"ph\":\"M\",\"pid\":{0},\"tid\":0,\"name\":\"process_sort_index\",\"args\":{{\"sort_index\":{0}}}}},\n"
      "{{\"ph\":\"M\",\"pid\":{0},\"tid\":0,\"name\":\"thread_name\",\"args\":{{\"name\":\"main thread\"}}}},\n",
      rank, name);
}

}  // namespace

std::string packed(const RankSpans& rank) {
  const Head head{rank.lost, rank.first, rank.last, rank.spans.size()};
  std::string bytes(sizeof(head) + rank.spans.size() * sizeof(Span), '\0');
  std::memcpy(bytes.data(), &head, sizeof(head));
  if (!rank.spans.empty())
    std::memcpy(bytes.data() + sizeof(head), rank.spans.data(), rank.spans.size() * sizeof(Span));
  return bytes + rank.host;
}

RankSpans unpacked(const std::string& bytes) {
  Head head{};
  std::memcpy(&head, bytes.data(), sizeof(head));
  RankSpans rank{{}, std::vector<Span>(head.spans), head.lost, head.first, head.last};
  if (head.spans > 0) std::memcpy(rank.spans.data(), bytes.data() + sizeof(head), head.spans * sizeof(Span));
  rank.host = bytes.substr(sizeof(head) + head.spans * sizeof(Span));
  return rank;
}

std::string trace_text(std::span<const RankSpans> ranks) {
  std::int64_t start = std::numeric_limits<std::int64_t>::max();
  std::int64_t error = 0;
  std::uint64_t lost = 0;
  for (const RankSpans& rank : ranks) {
    error = std::max({error, rank.first.error_ns, rank.last.error_ns});
    lost += rank.lost;
    for (const Span& span : rank.spans)
      start = std::min(start, by_clock_of_rank_0(span.begin_ns, rank.first, rank.last));
  }
  std::string text = "{\"traceEvents\":[\n";
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const RankSpans& of = ranks[rank];
    add_name(text, rank, of);
    for (const Span& span : of.spans) {
      const std::int64_t begin = by_clock_of_rank_0(span.begin_ns, of.first, of.last);
      const std::int64_t end = by_clock_of_rank_0(span.end_ns, of.first, of.last);
      fmt::format_to(std::back_inserter(text),
                     "{{\"ph\":\"X\",\"pid\":{},\"tid\":0,\"name\":\"{}\",\"cat\":\"{}\",\"ts\":{:.3f},\"dur\":{:.3f},"
                     "\"args\":{{\"step\":{},\"number\":{}}}}},\n",
                     rank, name_of(span), kind_of(span), static_cast<double>(begin - start) / 1e3,
                     static_cast<double>(std::max<std::int64_t>(end - begin, 0)) / 1e3, span.step, span.number);
    }
  }
  if (!ranks.empty()) text.erase(text.size() - 2, 1);  // remove the last comma
  const nlohmann::json more = {
      {"clocks", "of rank 0: offsets by the shortest of 32 round trips, at the beginning and at the end"},
      {"clocks_differ_by_at_most_us", static_cast<double>(error) / 1e3},
      {"earlier_spans_left_out", lost}};
  return text + "],\n\"displayTimeUnit\":\"ms\",\n\"otherData\":" + json_text(more) + "}\n";
}

}  // namespace lockstep
