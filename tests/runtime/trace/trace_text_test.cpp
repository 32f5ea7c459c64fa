// Spans, clocks and the text of a trace.
#include "runtime/trace/trace_text.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "runtime/watch/rank_status.hpp"

namespace lockstep::trace_text_test {

using Json = nlohmann::json;

Span span_of(std::int64_t begin, std::int64_t end, Phase phase, std::int32_t number = 1) {
  return {begin, end, 7, static_cast<std::int32_t>(phase), number};
}

TEST(SpanLogTest, keeps_the_last_ones_in_order_and_counts_the_others) {
  SpanLog log(3);
  EXPECT_TRUE(log.spans().empty());
  for (int i = 1; i <= 3; ++i) log.add(span_of(i, i + 1, Phase::forward));
  EXPECT_EQ(log.lost(), 0U);
  for (int i = 4; i <= 8; ++i) log.add(span_of(i, i + 1, Phase::forward));
  EXPECT_EQ(log.lost(), 5U);
  ASSERT_EQ(log.spans().size(), 3U);
  EXPECT_EQ(log.spans()[0].begin_ns, 6);
  EXPECT_EQ(log.spans()[2].begin_ns, 8);
}

TEST(SpanLogTest, a_rank_puts_down_each_phase_with_the_step_that_it_began_in) {
  SpanLog log(100);
  rank_status::enter(Phase::meeting);
  {
    const rank_status::SpanLogScope shown(&log);
    rank_status::set_step(4);  // counted from 0
    rank_status::enter(Phase::forward);
    rank_status::enter(Phase::backward);
    rank_status::begin_sum();
    rank_status::end_sum();
    rank_status::set_step(5);
    rank_status::enter(Phase::forward);
    rank_status::enter(Phase::updating);
  }
  rank_status::begin_sum();
  rank_status::end_sum();
  rank_status::enter(Phase::meeting);
  const std::vector<Span> spans = log.spans();
  ASSERT_EQ(spans.size(), 5U) << "and none before or after";
  const auto expect = [&](std::size_t i, std::int32_t what, std::int64_t step, std::int32_t number) {
    EXPECT_EQ(spans[i].what, what) << i;
    EXPECT_EQ(spans[i].step, step) << i;
    EXPECT_EQ(spans[i].number, number) << i;
    EXPECT_LE(spans[i].begin_ns, spans[i].end_ns) << i;
  };
  expect(1, static_cast<std::int32_t>(Phase::forward), 5, 1);
  expect(2, Span::starting_sum, 5, 1);
  expect(3, static_cast<std::int32_t>(Phase::backward), 5, 1);
  expect(4, static_cast<std::int32_t>(Phase::forward), 6, 2);
  EXPECT_EQ(spans[1].end_ns, spans[3].begin_ns) << "no gap between phases";
  EXPECT_GE(spans[2].begin_ns, spans[3].begin_ns);
  EXPECT_LE(spans[2].end_ns, spans[3].end_ns);
}

TEST(ClockOffsetTest, the_answer_that_came_back_soonest_counts) {
  const std::vector<ClockAnswer> answers{{0, 5000, 1000}, {2000, 6040, 2080}, {3000, 9000, 3500}};
  const ClockOffset offset = best_offset(answers);
  EXPECT_EQ(offset.at_ns, 2040);
  EXPECT_EQ(offset.offset_ns, 4000);
  EXPECT_EQ(offset.error_ns, 41);
}

TEST(ClockOffsetTest, between_two_measurements_a_clock_moves_in_a_straight_line) {
  const ClockOffset first{1000, 500, 1};
  const ClockOffset last{3000, 700, 1};
  EXPECT_EQ(by_clock_of_rank_0(1000, first, last), 1500);
  EXPECT_EQ(by_clock_of_rank_0(2000, first, last), 2600);
  EXPECT_EQ(by_clock_of_rank_0(3000, first, last), 3700);
  EXPECT_EQ(by_clock_of_rank_0(0, first, last), 500);
  EXPECT_EQ(by_clock_of_rank_0(4000, first, last), 4700);
  EXPECT_EQ(by_clock_of_rank_0(2000, first, first), 2500);
}

TEST(TraceTextTest, spans_of_ranks_stand_by_one_clock) {
  std::vector<RankSpans> ranks(2);
  ranks[0] = {
      "n\"1", {span_of(10'000, 12'500, Phase::forward), span_of(12'500, 20'000, Phase::reducing, 3)}, 0, {}, {}};
  ranks[1] = {"n2",
              {span_of(1'009'000, 1'020'000, Phase::reducing, 3), {1'010'000, 1'011'000, 7, Span::starting_sum, 9}},
              4,
              {0, -1'000'000, 250},
              {2'000'000, -1'000'000, 100}};
  const Json trace = Json::parse(trace_text(ranks));
  std::vector<Json> spans;
  std::vector<Json> names;
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] == "X") spans.push_back(event);
    if (event["name"] == "process_name") names.push_back(event["args"]["name"]);
  }
  ASSERT_EQ(names.size(), 2U);
  EXPECT_EQ(names[0], "rank 0 on n\"1");
  ASSERT_EQ(spans.size(), 4U);
  EXPECT_EQ(spans[0], Json::parse(R"({"ph":"X","pid":0,"tid":0,"name":"in forward","cat":"alone","ts":1.0,"dur":2.5,
                                      "args":{"step":7,"number":1}})"));
  EXPECT_EQ(spans[1]["name"], "summing gradients");
  EXPECT_EQ(spans[1]["cat"], "together");
  EXPECT_EQ(spans[1]["args"]["number"], 3);
  EXPECT_EQ(spans[2]["ts"], 0.0);  // the first of all
  EXPECT_EQ(spans[2]["dur"], 11.0);
  EXPECT_EQ(spans[3]["name"], "starting a sum");
  EXPECT_EQ(spans[3]["args"]["number"], 9);
  EXPECT_EQ(trace["otherData"]["clocks_differ_by_at_most_us"], 0.25);
  EXPECT_EQ(trace["otherData"]["earlier_spans_left_out"], 4);
}

TEST(TraceTextTest, what_ranks_send_is_what_they_have) {
  const RankSpans rank{"n1", {span_of(1, 2, Phase::forward), span_of(2, 3, Phase::backward)}, 5, {1, 2, 3}, {4, 5, 6}};
  const RankSpans same = unpacked(packed(rank));
  EXPECT_EQ(same.host, "n1");
  ASSERT_EQ(same.spans.size(), 2U);
  EXPECT_EQ(same.spans[1].end_ns, 3);
  EXPECT_EQ(same.lost, 5U);
  EXPECT_EQ(same.last.offset_ns, 5);
  EXPECT_EQ(trace_text({}).substr(0, 16), "{\"traceEvents\":[");
  EXPECT_EQ(trace_text(std::vector<RankSpans>{unpacked(packed({}))}).back(), '\n');
}

}  // namespace lockstep::trace_text_test
