#include "train/observers/straggler.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "runtime/watch/rank_status.hpp"
#include "support/messages.hpp"
#include "support/temporary_folder.hpp"
#include "train/observers/reported_training.hpp"

namespace lockstep::straggler_test {

TEST(Straggler, the_last_to_arrive_is_named_with_what_it_costs) {
  const std::vector<StepTimes> ranks = {{"n1", 1, 79, 20}, {"n1", 1, 81, 18}, {"n2", 15, 85, 0}, {"n2", 1, 80, 19}};
  const Straggler slowest = find_straggler(ranks);
  EXPECT_EQ(slowest.rank, 2);
  EXPECT_DOUBLE_EQ(slowest.cost, 0.19);
  EXPECT_EQ(slowest.times.host, "n2");
  EXPECT_EQ(slowest.middle_arrival_ms, 81);
  expect_message(slowest.sentence, {"rank 2 on n2", "19 %"});
}

TEST(Straggler, two_ranks_have_no_middle_and_one_node_is_everybodys) {
  expect_message(find_straggler(std::vector<StepTimes>{{"n1", 0, 50, 50}, {"n1", 15, 85, 0}}).sentence,
                 {"rank 1 on n1", "50 %", "100.0 ms", "15.0", "85.0", "50.0"});
  expect_message(find_straggler(std::vector<StepTimes>{{"n1", 0, 50, 50}, {"n2", 15, 85, 0}}).sentence,
                 {"rank 1 on n2", "50.0"});
}

TEST(Straggler, even_ranks_cost_nothing) {
  EXPECT_EQ(find_straggler(std::vector<StepTimes>{{"n1", 1, 80, 1}, {"n1", 1, 80, 1}}).cost, 0);
  EXPECT_EQ(find_straggler(std::vector<StepTimes>{{"n1", 0, 0, 0}}).cost, 0) << "nothing was measured";
}

TEST(Straggler, of_two_the_faster_is_the_measure) {
  EXPECT_DOUBLE_EQ(find_straggler(std::vector<StepTimes>{{"n1", 0, 50, 50}, {"n1", 0, 100, 0}}).cost, 0.5);
}

void spend(Phase phase, int milliseconds) {
  rank_status::enter(phase);
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

// It named every rank in turn on a machine with other work to do.
TEST(StragglerWatch, names_a_rank_that_is_late_twice_in_a_row_once_until_it_is_another) {
  const Communicator world(MPI_COMM_WORLD);
  const int ranks = world.size();
  std::int64_t steps = 40;  // of an earlier run
  MetricsStream stream(nullptr, nullptr);
  ContainedFailure failure(world);
  StragglerWatch watch(world, ranks, stream, failure, 2, steps);
  testing::internal::CaptureStdout();
  for (const int slow : {0, ranks - 1, ranks - 1, ranks - 1, 0, ranks - 1, ranks - 1, 0, 0}) {
    for (int step = 0; step < 2; ++step) {
      spend(Phase::reading, 5);
      spend(Phase::forward, world.rank() == slow ? 100 : 10);
      spend(Phase::backward, 10);
      spend(Phase::reducing, world.rank() == slow ? 5 : 95);
      spend(Phase::updating, 1);
    }
    const std::optional<Straggler> slowest = watch.report(steps += 2);
    EXPECT_EQ(slowest.has_value(), world.rank() == 0 && ranks > 1);
    if (!slowest) continue;
    EXPECT_EQ(slowest->rank, slow);
    EXPECT_GT(slowest->times.compute_ms, 100);
    EXPECT_LT(slowest->times.compute_ms, 1000);
  }
  const std::string said = testing::internal::GetCapturedStdout();
  std::size_t lines = 0;
  for (const char c : said) lines += c == '\n' ? 1 : 0;
  if (ranks == 1 || world.rank() != 0) {
    EXPECT_EQ(said, "");
    return;
  }
  EXPECT_EQ(lines, 2U) << said;
  EXPECT_NE(said.find("rank " + std::to_string(ranks - 1) + " on "), std::string::npos) << said;
  EXPECT_NE(said.find("rank 0 on "), std::string::npos) << said;
}

TEST(StragglerWatch, the_slowest_rank_is_an_object_of_its_own) {
  const Communicator world(MPI_COMM_WORLD);
  const TemporaryFolder folder;
  OutputFolder output(folder.path() / "run");
  ReportedTraining training(output.lock(), {2, 5}, 2);
  ContainedFailure failure(world);
  StragglerWatch watch(world, world.size(), training.stream(), failure, 2, 0);
  EXPECT_FALSE(watch.pauses_after(5));
  for (const std::int64_t step : {0, 1, 2, 3, 4, 5}) training.step(step, {1, 1, 4});
  spend(Phase::forward, 2);
  ASSERT_TRUE(watch.pauses_after(6));
  watch.on_pause(training.view());
  nlohmann::json said = output.metrics().back();
  EXPECT_EQ(said["kind"] == "slowest rank", world.rank() == 0 && world.size() > 1);
  if (said["kind"] != "slowest rank") return;
  EXPECT_EQ(said["epoch"], 2);
  EXPECT_EQ(said["step"], 6);
  EXPECT_DOUBLE_EQ(said["arrival_ms"], said["data_ms"].get<double>() + said["compute_ms"].get<double>());
  for (const char* field : {"rank", "host", "cost", "middle_arrival_ms", "seconds"}) EXPECT_TRUE(said.contains(field));
}

}  // namespace lockstep::straggler_test
