#include "job/time_limit.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <stdlib.h>  // NOLINT(modernize-deprecated-headers): setenv is POSIX
#include <sys/stat.h>

#include <cmath>
#include <ctime>
#include <fstream>

#include "support/temporary_folder.hpp"

namespace lockstep::time_limit_test {

class TimeLimitTest : public testing::Test {
 protected:
  TimeLimitTest() {
    job_.id = 17;
    const char* const path = ::getenv("PATH");
    if (path != nullptr) path_ = path;
  }
  ~TimeLimitTest() override { ::setenv("PATH", path_.c_str(), 1); }
  // Makes `squeue` say `message`, if it is asked for the end of `job`.
  void let_squeue_say(const std::string& message, const std::string& job = "17") const {
    const std::filesystem::path program = folder_.path() / "squeue";
    std::ofstream(program) << "#!/bin/sh\n[ \"$*\" = '-h -j " << job << " -o %e' ] && echo '" << message << "'\n";
    ::chmod(program.c_str(), 0755);
    ::setenv("PATH", (folder_.path().string() + ":" + path_).c_str(), 1);
  }
  static std::string local_time(std::time_t time) {
    std::tm local{};
    ::localtime_r(&time, &local);
    char text[32];
    std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &local);
    return text;
  }

  TemporaryFolder folder_;
  std::string path_;
  SlurmJob job_;
};

TEST_F(TimeLimitTest, without_a_limit_there_is_time_for_ever) {
  const TimeLimit limit(std::nullopt, std::nullopt);
  EXPECT_TRUE(std::isinf(limit.seconds_left()));
  EXPECT_EQ(limit.source(), "");
}

TEST_F(TimeLimitTest, counts_from_its_construction) {
  const TimeLimit limit(100.0, std::nullopt);
  EXPECT_NEAR(limit.seconds_left(), 100, 1);
  EXPECT_EQ(limit.source(), "--time-limit");
}

TEST_F(TimeLimitTest, slurm_says_when_the_job_ends) {
  job_.ends_at = std::time(nullptr) + 500;
  EXPECT_NEAR(TimeLimit(std::nullopt, job_).seconds_left(), 500, 2);
  EXPECT_EQ(TimeLimit(std::nullopt, job_).source(), "Slurm's time limit");
  EXPECT_EQ(TimeLimit(1000.0, job_).source(), "Slurm's time limit");  // the earlier one counts
  EXPECT_EQ(TimeLimit(100.0, job_).source(), "--time-limit");
}

TEST_F(TimeLimitTest, where_the_job_does_not_say_it_squeue_is_asked) {
  let_squeue_say(local_time(std::time(nullptr) + 300));
  EXPECT_NEAR(TimeLimit(std::nullopt, job_).seconds_left(), 300, 2);
  let_squeue_say("N/A");
  EXPECT_TRUE(std::isinf(TimeLimit(std::nullopt, job_).seconds_left()));
}

TEST_F(TimeLimitTest, the_last_task_of_an_array_asks_for_itself_alone) {
  job_.array_task = SlurmJob::ArrayTask{17, 3};
  let_squeue_say(local_time(std::time(nullptr) + 300), "17_3");
  EXPECT_NEAR(TimeLimit(std::nullopt, job_).seconds_left(), 300, 2);
}

TEST_F(TimeLimitTest, squeues_times_are_local) {
  const std::time_t now = std::time(nullptr);
  EXPECT_EQ(parse_slurm_time(local_time(now) + "\n"), static_cast<double>(now));
  for (const char* text : {"", "N/A", "NONE", "Unknown", "2026-13-45T00:00:00"}) {
    EXPECT_EQ(parse_slurm_time(text), std::nullopt) << text;
  }
}

}  // namespace lockstep::time_limit_test
