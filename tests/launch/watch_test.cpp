// Ranks that hang, as people and job scripts see it: who, where, for how long, and what the others wait in.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/io/file.hpp"
#include "support/program.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::watch_test {

using testing::HasSubstr;
using testing::MatchesRegex;

std::string host() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

class WatchTest : public testing::Test {
 protected:
  ProgramResult run(int ranks, const std::vector<std::string>& options) const {
    std::vector<std::string> arguments = {built_program("failing_program").string(), "--output",
                                          folder_.path().string()};
    arguments.insert(arguments.end(), options.begin(), options.end());
    return run_program(ranks == 0 ? arguments : under_mpirun(ranks, arguments));
  }

  // Three ranks of which one ends as told, and what failure.json then says.
  nlohmann::json hang_one_of_three(const std::string& rank, const std::string& how) const {
    const auto start = std::chrono::steady_clock::now();
    const ProgramResult result = run(3, {"--rank", rank, "--how", how, "--hang-timeout", "1"});
    EXPECT_FALSE(result.timed_out);
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(15));
    EXPECT_EQ(result.exit_code, 76) << result.errors;
    const nlohmann::json said = report();
    EXPECT_EQ(said["code"], 76);
    EXPECT_TRUE(said["signal"].is_null());
    EXPECT_THAT(result.errors, HasSubstr(said["sentence"].get<std::string>()));
    return said;
  }

  bool has_report() const { return std::filesystem::exists(folder_.path() / "failure.json"); }
  nlohmann::json report() const { return nlohmann::json::parse(read_file(folder_.path() / "failure.json", 1 << 16)); }

 private:
  TemporaryFolder folder_;
};

TEST_F(WatchTest, a_rank_that_gets_no_further_is_named_with_those_that_wait) {
  const nlohmann::json said = hang_one_of_three("1", "hang");
  EXPECT_EQ(said["rank"], 1);
  EXPECT_THAT(said["sentence"].get<std::string>(),
              MatchesRegex("rank 1 on " + host() +
                           " has made no progress for [1-3]\\.[0-9] s: in forward \\(ranks 0, 2: meeting the other "
                           "ranks\\)\\. .*--hang-timeout\\."));
}

// Ranks of programs that do not train hung unseen.
TEST_F(WatchTest, by_processor_time_a_rank_that_is_stopped_is_named_and_one_that_works_unmarked_is_not) {
  const ProgramResult stopped = run(3, {"--rank", "1", "--how", "stop", "--hang-timeout", "1", "--by-time"});
  EXPECT_EQ(stopped.exit_code, 76) << stopped.errors;
  EXPECT_THAT(stopped.errors, HasSubstr("rank 1 on " + host() + " has been stopped for "));
  const ProgramResult working = run(3, {"--rank", "-1", "--how", "work_unmarked", "--hang-timeout", "1", "--by-time"});
  EXPECT_EQ(working.exit_code, 0) << working.errors;
}

TEST_F(WatchTest, a_rank_stuck_in_a_file_is_named_with_the_shard) {
  const nlohmann::json said = hang_one_of_three("2", "hang_reading");
  EXPECT_EQ(said["rank"], 2);
  EXPECT_THAT(said["sentence"].get<std::string>(),
              HasSubstr(": waiting for data, reading shard '/data/train-00003.h5' ("));
}

TEST_F(WatchTest, a_rank_that_is_stopped_is_named_also_where_it_would_speak_first) {
  for (const std::string rank : {"2", "0"}) {
    const nlohmann::json said = hang_one_of_three(rank, "stop");
    EXPECT_EQ(said["rank"].dump(), rank);
    EXPECT_THAT(said["sentence"].get<std::string>(),
                MatchesRegex("rank " + rank + " on " + host() +
                             " has been stopped for [1-3]\\.[0-9] s while meeting the other ranks \\(ranks .*: meeting "
                             "the other ranks\\)\\. .*kill -CONT.*--hang-timeout 0 .*"));
  }
}

TEST_F(WatchTest, a_rank_that_waits_elsewhere_is_named_as_out_of_step) {
  const nlohmann::json said = hang_one_of_three("1", "hang_elsewhere");
  EXPECT_EQ(said["rank"], 1);
  EXPECT_THAT(said["sentence"].get<std::string>(),
              HasSubstr("rank 1 on " + host() + " is out of step: gathering results for "));
}

TEST_F(WatchTest, one_rank_alone_watches_itself) {
  const ProgramResult result = run(0, {"--how", "hang", "--hang-timeout", "0.5"});
  EXPECT_EQ(result.exit_code, 76);
  EXPECT_THAT(result.errors, HasSubstr("rank 0 on " + host() + " has made no progress for 0."));
  EXPECT_EQ(report()["rank"], 0);
}

TEST_F(WatchTest, slow_work_is_no_hang_while_it_gets_on) {
  const ProgramResult result = run(2, {"--rank", "1", "--how", "work_slowly", "--hang-timeout", "1"});
  EXPECT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_FALSE(has_report());
}

TEST_F(WatchTest, a_rank_that_is_asked_says_where_it_is) {
  for (const int ranks : {0, 2}) {
    const ProgramResult result = run(ranks, {"--how", "ask"});
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    EXPECT_THAT(result.errors, HasSubstr("[rank 0, " + host() + "]  is in backward at step 412, for 0.0 s\n"));
    EXPECT_FALSE(has_report());
  }
}

}  // namespace lockstep::watch_test
