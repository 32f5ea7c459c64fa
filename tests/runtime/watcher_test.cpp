// What is told of ranks on other nodes: deaths, failures, hangs and silence. Of ranks of one node: tests/launch.
#include "runtime/watch/watcher.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <future>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "base/io/file.hpp"
#include "support/messages.hpp"
#include "support/program.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::watcher_test {

using testing::AnyOf;
using testing::HasSubstr;
using testing::MatchesRegex;

class WatcherTest : public testing::Test {
 protected:
  ProgramResult run(int ranks, int ranks_per_node, int rank, const std::string& how) const {
    return run_in(folder_, ranks, ranks_per_node, rank, how);
  }
  static ProgramResult run_in(const TemporaryFolder& folder, int ranks, int ranks_per_node, int rank,
                              const std::string& how) {
    const auto start = std::chrono::steady_clock::now();
    ProgramResult result =
        run_program(under_mpirun(ranks, {built_program("watched_program").string(), std::to_string(ranks_per_node),
                                         std::to_string(rank), how, "2", folder.path().string()}));
    EXPECT_FALSE(result.timed_out);
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
    return result;
  }

  void remove_report() const { std::filesystem::remove(folder_.path() / "failure.json"); }
  // What a program prints to stderr, but for what Open MPI 5 has to say on interfaces that do not reach each other.
  static std::string own_text(const std::string& errors) {
    std::istringstream lines(errors);
    std::string own;
    for (std::string line; std::getline(lines, line);) {
      const bool is_mpis = line.empty() || line.find("btl_tcp_proc.c") != std::string::npos ||
                           line == "Unable to find reachable pairing between local and remote interfaces";
      if (!is_mpis) own += line + '\n';
    }
    return own;
  }
  bool has_report() const { return std::filesystem::exists(folder_.path() / "failure.json"); }
  nlohmann::json report() const { return report_in(folder_); }
  static nlohmann::json report_in(const TemporaryFolder& folder) {
    return nlohmann::json::parse(read_file(folder.path() / "failure.json", 1 << 16));
  }
  std::string sentence() const { return report()["sentence"]; }

 private:
  TemporaryFolder folder_;
};

TEST_F(WatcherTest, nobody_is_missed_who_ends_as_he_should) {
  for (const int ranks_per_node : {1, 2}) {
    const ProgramResult result = run(4, ranks_per_node, -1, "finish");
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    EXPECT_EQ(own_text(result.errors), "");
    EXPECT_FALSE(has_report());
  }
}

// The launcher may be the first to end the job, but not before the death is told.
TEST_F(WatcherTest, the_death_of_the_only_rank_of_a_node_is_told_by_another_node) {
  for (const int rank : {2, 0}) {
    remove_report();
    const ProgramResult result = run(3, 1, rank, "kill");
    EXPECT_NE(result.exit_code, 0);
    EXPECT_EQ(report()["rank"], rank);
    EXPECT_EQ(report()["host"], "n" + std::to_string(rank + 1)) << "not the one that writes";
    expect_message(sentence(), {std::to_string(rank), std::to_string(rank + 1)});
  }
}

// A survivor that knew nothing ended first, and mpirun then killed the one that was about to tell.
TEST_F(WatcherTest, a_death_is_told_though_the_rank_that_knows_comes_late) {
  run(3, 1, 2, "kill_while_rank_0_is_late");
  ASSERT_TRUE(has_report());
  EXPECT_EQ(report()["rank"], 2);
}

TEST_F(WatcherTest, a_death_is_told_by_a_survivor_of_the_node_who_knows_more) {
  run(4, 2, 2, "kill");
  EXPECT_EQ(report()["rank"], 2);
  EXPECT_THAT(sentence(), AnyOf(HasSubstr("rank 2 on n2 was killed by SIGKILL."),
                                HasSubstr("rank 2 on n2 was killed or ended without a word.")));
}

TEST_F(WatcherTest, a_rank_that_told_its_failure_itself_is_not_told_again) {
  const ProgramResult result = run(3, 1, 1, "fail");
  EXPECT_EQ(result.exit_code, 65) << result.errors;
  EXPECT_EQ(report()["code"], 65);
  EXPECT_EQ(sentence(), "shard 'x.h5' is damaged.");
}

// However much the nodes have to say to each other: a short timeout makes them talk often.
TEST_F(WatcherTest, ranks_that_are_all_told_to_end_do_so_and_blame_nobody) {
  for (const int ranks_per_node : {1, 2, 3}) {
    const ProgramResult result = run(3, ranks_per_node, -2, "terminate");
    EXPECT_NE(result.exit_code, 0);
    EXPECT_FALSE(has_report()) << sentence();
  }
}

TEST_F(WatcherTest, a_hang_on_another_node_is_told_with_all_who_wait) {
  const ProgramResult result = run(4, 2, 3, "hang");
  EXPECT_EQ(result.exit_code, 76) << result.errors;
  EXPECT_EQ(report()["rank"], 3);
  EXPECT_THAT(sentence(), MatchesRegex("rank 3 on n2 has made no progress for [23]\\.[0-9] s: in backward at step 412 "
                                       "\\(ranks 0-2: summing gradients at step 412, sum 0\\)\\. Check that node .*"));
}

TEST_F(WatcherTest, a_gpu_that_does_not_come_to_the_sum_is_named_from_another_node_too) {
  const ProgramResult result = run(4, 2, 3, "stick_gpu");
  EXPECT_EQ(result.exit_code, 76) << result.errors;
  EXPECT_EQ(report()["host"], "n2");
  EXPECT_EQ(report()["rank"], 3);
  EXPECT_THAT(sentence(),
              MatchesRegex("rank 3 on n2 blocks the others: for [23]\\.[0-9] s, its GPU has been computing after sum "
                           "1647, which took 3\\.2 ms \\(ranks 0-2: summing gradients at step 412, the GPU in sum 1648 "
                           "\\(bucket 2\\)\\)\\. Check that node's GPU .*"));
}

TEST_F(WatcherTest, a_stopped_node_leader_is_named_by_its_neighbour) {
  const ProgramResult result = run(4, 2, 2, "stop");
  EXPECT_EQ(result.exit_code, 76) << result.errors;
  EXPECT_THAT(sentence(), HasSubstr("rank 2 on n2 has been stopped for "));
}

TEST_F(WatcherTest, a_rank_that_is_stopped_before_an_all_gather_is_named_with_those_that_wait_in_it) {
  const ProgramResult result = run(4, 2, 1, "stop_before_all_gather");
  EXPECT_EQ(result.exit_code, 76) << result.errors;
  EXPECT_THAT(sentence(),
              MatchesRegex("rank 1 on n1 has been stopped for [23]\\.[0-9] s while gathering weights at step "
                           "412, sum 1 \\(ranks 0, 2-3: gathering weights at step 412, sum 1\\)\\. .*"));
}

TEST_F(WatcherTest, a_rank_that_ends_or_stops_before_it_sends_is_named_to_those_that_receive) {
  const ProgramResult stopped = run(4, 2, 1, "stop_before_message");
  EXPECT_EQ(stopped.exit_code, 76) << stopped.errors;
  EXPECT_THAT(sentence(),
              MatchesRegex("rank 1 on n1 has been stopped for [23]\\.[0-9] s while gathering results at step "
                           "412 \\(ranks 0, 2-3: gathering results at step 412\\)\\. .*"));
  remove_report();
  EXPECT_NE(run(4, 2, 1, "kill_before_message").exit_code, 0);
  EXPECT_EQ(report()["rank"], 1);
  EXPECT_THAT(sentence(), AnyOf(HasSubstr("rank 1 on n1 was killed by SIGKILL."),
                                HasSubstr("rank 1 on n1 was killed or ended without a word.")));
}

// Both are waited for at once.
TEST_F(WatcherTest, a_node_that_says_nothing_any_more_is_named_on_both_sides) {
  const std::array<TemporaryFolder, 2> folders;
  const auto stop = [&](int rank) { return run_in(folders[static_cast<std::size_t>(rank)], 2, 1, rank, "stop"); };
  std::array<std::future<ProgramResult>, 2> runs{std::async(std::launch::async, stop, 0),
                                                 std::async(std::launch::async, stop, 1)};
  for (const int rank : {0, 1}) {
    const ProgramResult result = runs[static_cast<std::size_t>(rank)].get();
    const nlohmann::json report = report_in(folders[static_cast<std::size_t>(rank)]);
    EXPECT_EQ(result.exit_code, 76) << result.errors;
    EXPECT_EQ(report["rank"], rank);
    EXPECT_EQ(report["host"], "n" + std::to_string(rank + 1));
    EXPECT_THAT(report["sentence"].get<std::string>(),
                MatchesRegex("no heartbeat from rank " + std::to_string(rank) + " on n" + std::to_string(rank + 1) +
                             (rank == 0 ? " for 1[01] s" : " for [78]\\.[0-9] s") +
                             "\\. It is stopped, or its node is cut off from the network\\. Check that "
                             "node\\. --hang-timeout 0 waits forever\\."));
  }
}

}  // namespace lockstep::watcher_test
