// A trace of real ranks: their clocks, and its file.
#include "runtime/trace/trace.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "base/io/file.hpp"
#include "base/log.hpp"
#include "support/no_room.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::trace_test {

namespace fs = std::filesystem;
using Json = nlohmann::json;

class TraceTest : public testing::Test {
 protected:
  const Communicator world_{MPI_COMM_WORLD};
  TemporaryFolder own_;
  const fs::path folder_ = world_.broadcast((own_.path() / "traces").string(), 0);
};

// Ranks of one node share a clock.
TEST_F(TraceTest, clocks_of_one_node_differ_by_no_more_than_the_error) {
  const ClockOffset offset = measure_offset(world_);
  EXPECT_LE(std::abs(offset.offset_ns), offset.error_ns);
  EXPECT_GE(offset.at_ns, 0);
}

TEST_F(TraceTest, each_rank_is_in_the_file_and_what_ranks_do_together_ends_together) {
  rank_status::enter(Phase::starting);
  Trace trace(world_, folder_, "n1");
  for (int step = 0; step < 3; ++step) {
    rank_status::set_step(step);
    rank_status::enter(Phase::forward);
    if (world_.rank() == 0) ::usleep(5000);
    rank_status::enter(Phase::reducing);
    world_.barrier();
  }
  trace.write(12);
  world_.barrier();
  if (world_.rank() != 0) return;
  const Json read = Json::parse(read_file(folder_ / "trace-12.json", 1 << 24));
  std::map<int, std::vector<Json>> sums;  // of each rank
  for (const Json& event : read["traceEvents"]) {
    if (event["name"] == "summing gradients") sums[event["pid"].get<int>()].push_back(event);
  }
  ASSERT_EQ(sums.size(), static_cast<std::size_t>(world_.size()));
  for (const auto& [rank, own] : sums) {
    ASSERT_EQ(own.size(), 3U);
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(own[i]["args"]["number"], i + 1);
      EXPECT_EQ(own[i]["args"]["step"], i + 1);
      // Nobody leaves a barrier before the last has come.
      const double end = own[i]["ts"].get<double>() + own[i]["dur"].get<double>();
      EXPECT_GE(end + 1, sums[0][i]["ts"].get<double>());
    }
  }
}

TEST_F(TraceTest, a_disk_that_is_full_is_told_and_leaves_nothing) {
  Trace trace(world_, folder_, "n1");
  for (int i = 0; i < 500; ++i) rank_status::enter(Phase::forward);
  testing::internal::CaptureStderr();
  {
    const NoRoomBeyond limit(4096);
    trace.write(0);
  }
  const std::string message = testing::internal::GetCapturedStderr();
  world_.barrier();
  if (world_.rank() != 0) return;
  EXPECT_NE(message.find("'" + (folder_ / "trace-0.json").string() + "'"), std::string::npos) << message;
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(TraceTest, memory_is_bounded) {
  EXPECT_EQ(spans_kept(1), 1U << 17);
  EXPECT_EQ(spans_kept(8), 1U << 16);
  EXPECT_EQ(spans_kept(512), 1U << 10);
  EXPECT_EQ(spans_kept(100'000), 1U << 10);
}

}  // namespace lockstep::trace_test
