#include "runtime/watch/rank_view.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "base/error.hpp"

namespace lockstep::rank_view_test {

TEST(RankView, a_sum_has_its_number) {
  RankView view;
  view.phase = Phase::reducing;
  view.step = 3;
  view.sum = 12;
  EXPECT_EQ(describe_place(view), "summing gradients at step 3, sum 12");
}

RankView on_gpu(Phase phase, const SumMarks& marks) {
  RankView view;
  view.phase = phase;
  view.step = 412;
  view.sum = 8;  // the host has counted the steps that it did not repeat
  view.device = DeviceView{marks, 301};
  return view;
}

TEST(RankView, a_gpu_says_itself_where_it_is) {
  const SumMarks summing{1648, 2, 5'000'000, 1647, 1'800'000};
  EXPECT_EQ(describe_place(on_gpu(Phase::reducing, summing)),
            "summing gradients at step 412, the GPU in sum 1648 (bucket 2)");
  EXPECT_EQ(describe_host(on_gpu(Phase::reducing, summing)), "summing gradients at step 412");
  EXPECT_EQ(describe_place(on_gpu(Phase::gathering, summing)),
            "gathering results at step 412, the GPU in sum 1648 (bucket 2)");
  const SumMarks computing{1648, 3, 5'000'000, 1648, 5'400'000};
  EXPECT_EQ(describe_place(on_gpu(Phase::reading, computing)),
            "waiting for data at step 412, the GPU computing after sum 1648");
  EXPECT_EQ(describe_place(on_gpu(Phase::gathering, computing)), "gathering results at step 412");
  EXPECT_EQ(describe_place(on_gpu(Phase::forward, {})), "in forward at step 412, the GPU before its first sum");
}

TEST(RankView, a_gpus_own_clock_tells_how_long_the_last_thing_took) {
  EXPECT_EQ(describe_device({{1648, 2, 5'000'000, 1647, 1'800'000}, 0}),
            "in sum 1648 (bucket 2), after computing for 3.2 ms");
  EXPECT_EQ(describe_device({{1648, 2, 5'000'000, 1648, 5'400'000}, 0}), "computing after sum 1648, which took 0.4 ms");
  EXPECT_EQ(describe_device({{1, 0, 5'000'000, 0, 0}, 0}), "in sum 1 (bucket 0)");
  EXPECT_EQ(describe_device({}), "before its first sum");
  // Looked at between the stores of one mark.
  EXPECT_EQ(describe_device({{1648, 2, 9'000'000, 1648, 5'400'000}, 0}), "computing after sum 1648, which took 0.0 ms");
}

TEST(RankView, ranks_are_told_in_ranges) {
  EXPECT_EQ(describe_ranks({3}), "rank 3");
  EXPECT_EQ(describe_ranks({5, 0, 4, 3}), "ranks 0, 3-5");
  EXPECT_EQ(describe_ranks({0, 1}), "ranks 0-1");
}

TEST(RankView, seconds_are_told_as_finely_as_they_matter) {
  EXPECT_EQ(format_seconds(0.34), "0.3 s");
  EXPECT_EQ(format_seconds(300.4), "300 s");
}

RankView sample_augmentation() {
  RankView view;
  view.rank = 6;
  view.host = "n2";
  view.phase = Phase::reading;
  view.step = 411;
  view.sum = 823;
  view.shards = {0, 4};
  view.process_state = 'D';
  view.stalled_seconds = 12.5;
  view.team = {4, 2};
  view.device = DeviceView{{1648, 2, std::uint64_t{1} << 63, 1647, 1'800'000}, 11.5};
  return view;
}

TEST(RankView, another_node_reads_what_was_written) {
  const RankView sent = sample_augmentation();
  const std::vector<RankView> views = views_from_text(to_text(std::vector{sent, RankView{}}), "n2");
  ASSERT_EQ(views.size(), 2U);
  const RankView& got = views[0];
  EXPECT_EQ(got.rank, sent.rank);
  EXPECT_EQ(got.host, "n2");
  EXPECT_EQ(got.code, sent.code);
  EXPECT_EQ(got.phase, sent.phase);
  EXPECT_EQ(got.step, sent.step);
  EXPECT_EQ(got.sum, sent.sum);
  EXPECT_EQ(got.team, sent.team);
  EXPECT_EQ(got.shards, sent.shards);
  EXPECT_EQ(got.process_state, sent.process_state);
  EXPECT_EQ(got.stalled_seconds, sent.stalled_seconds);
  ASSERT_TRUE(got.device);
  EXPECT_EQ(got.device->marks.begun, sent.device->marks.begun);
  EXPECT_EQ(got.device->marks.bucket, sent.device->marks.bucket);
  EXPECT_EQ(got.device->marks.begun_ns, sent.device->marks.begun_ns);
  EXPECT_EQ(got.device->marks.ended, sent.device->marks.ended);
  EXPECT_EQ(got.device->marks.ended_ns, sent.device->marks.ended_ns);
  EXPECT_EQ(got.device->stalled_seconds, sent.device->stalled_seconds);
  EXPECT_FALSE(views[1].device);
}

TEST(RankView, text_that_no_rank_writes_is_refused) {
  const std::string good = to_text(std::vector{sample_augmentation()});
  for (const std::string& bad :
       {std::string(), good.substr(0, good.size() - 1), std::string("[[1]]"), std::string("[[1,2,\"x\",0,0,[],63,0]]"),
        std::string("[[1,0,0,0,0,[],63,0]]"), std::string("[[1,0,0,0,0,[],63,0,[1,2]]]"), std::string("{\"a\":1}"),
        std::string("7")}) {
    EXPECT_THROW(static_cast<void>(views_from_text(bad, "n2")), Error) << bad;
  }
}

}  // namespace lockstep::rank_view_test
