// scaling_study as people meet it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/io/file.hpp"
#include "files/folder/folder_lock.hpp"
#include "scaling/study_file.hpp"
#include "support/program.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::scaling_study_test {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class ScalingStudyTest : public testing::Test {
 protected:
  ProgramResult measure(int ranks, const std::vector<std::string>& options) const {
    std::vector<std::string> arguments = {built_program("scaling_study").string(), "--output", folder().string()};
    arguments.insert(arguments.end(), {"--model", "lenet", "--batch-per-rank", "6", "--device", "cpu"});
    arguments.insert(arguments.end(), {"--image-size", "28", "--channels", "1", "--seconds", "0.01"});
    arguments.insert(arguments.end(), options.begin(), options.end());
    return run_program(ranks == 1 ? arguments : under_mpirun(ranks, arguments));
  }

  std::filesystem::path folder() const { return root_.path() / "study"; }
  TemporaryFolder root_;
};

TEST_F(ScalingStudyTest, ranks_and_batches_are_measured_and_told) {
  const ProgramResult result = measure(3, {"--ranks", "1,2,3", "--repeats", "2", "--threads", "1"});
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_THAT(result.output, HasSubstr("weak scaling, 6 samples "));
  EXPECT_THAT(result.output, HasSubstr("strong scaling, 6 samples "));
  EXPECT_THAT(result.output, HasSubstr("The prediction is off by "));
  const Study study = read_study(folder() / "study.json");
  ASSERT_EQ(study.points.size(), 5U);
  EXPECT_EQ(study.hosts.size(), 3U);
  EXPECT_EQ(study.model, "lenet");
  EXPECT_GT(study.parameters, 10'000);
  for (const StudyPoint& point : study.points) {
    EXPECT_EQ(point.step_seconds.size(), 2U);
    ASSERT_TRUE(point.has_parts());
    double parts = 0;
    for (std::size_t part = 0; part < step_part_count; ++part) parts += point.part(static_cast<StepPart>(part));
    EXPECT_NEAR(parts, median_interval(point.step_seconds).middle, 0.01 * parts);
    EXPECT_EQ(point.by_rank.size(), static_cast<std::size_t>(point.grid.ranks));
    EXPECT_EQ(point.sums.empty(), point.grid.ranks == 1);
    for (const MeasuredAllReduce& sum : point.sums) EXPECT_EQ(sum.seconds.size(), 2U);
    for (const Bucket& bucket : point.buckets) EXPECT_LE(bucket.ready, 1);
  }
  EXPECT_TRUE(begins_as_study_csv(read_file(folder() / "study.csv", 1 << 20)));
}

TEST_F(ScalingStudyTest, each_setting_is_varied_alone) {
  const ProgramResult result =
      measure(2, {"--repeats", "2", "--threads", "1", "--sweep-threads", "2", "--sweep-bucket-mib", "1,4",
                  "--sweep-precision", "bf16", "--sweep-local-steps", "1,4"});
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_THAT(result.output, HasSubstr("2 threads "));
  EXPECT_THAT(result.output, HasSubstr("buckets of 1 MiB "));
  EXPECT_THAT(result.output, HasSubstr("bf16 "));
  const Study study = read_study(folder() / "study.json");
  ASSERT_EQ(study.points.size(), 7U);
  for (const Sweep sweep : sweeps) EXPECT_EQ(points_of(study, sweep).size(), 2U);
  EXPECT_THAT(read_file(folder() / "study.csv", 1 << 20), HasSubstr("\n2,1,6,1,4,bf16,all-reduce,2,"));
}

TEST_F(ScalingStudyTest, exchanges_are_compared) {
  const ProgramResult result = measure(3, {"--repeats", "1", "--threads", "1", "--ranks", "3", "--sweep-local-steps",
                                           "4", "--sweep-servers", "1,2", "--sweep-compress", "powersgd:2"});
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  const Study study = read_study(folder() / "study.json");
  const std::vector<const StudyPoint*> points = points_of(study, Sweep::exchange);
  ASSERT_EQ(points.size(), 5U);
  const std::vector<Exchange> expected = {{}, {.local_steps = 4}, {.servers = 1}, {.servers = 2}, {.powersgd_rank = 2}};
  const auto bytes_of = [](const StudyPoint& point) {
    std::int64_t bytes = 0;
    for (const Bucket& bucket : point.buckets) bytes += bucket.bytes;
    return bytes;
  };
  for (std::size_t index = 0; index < points.size(); ++index) {
    const StudyPoint& point = *points[index];
    EXPECT_EQ(point.setup.exchange, expected[index]);
    const auto trainers = static_cast<std::size_t>(3 - point.setup.exchange.servers);
    EXPECT_EQ(point.by_rank.size(), trainers);
    EXPECT_EQ(point.global_batch(), static_cast<std::int64_t>(6 * trainers));
    double parts = 0;
    for (std::size_t part = 0; part < step_part_count; ++part) parts += point.part(static_cast<StepPart>(part));
    EXPECT_NEAR(parts, point.step_seconds[0], 0.01 * parts) << index;
  }
  EXPECT_GE(bytes_of(*points[0]), 4 * study.parameters);
  EXPECT_GE(bytes_of(*points[1]), 4 * study.parameters);
  EXPECT_EQ(bytes_of(*points[2]), 0);
  EXPECT_LT(bytes_of(*points[4]), bytes_of(*points[0]) / 2);
  EXPECT_THAT(result.output, HasSubstr("--sync ps --servers 2"));
  EXPECT_THAT(read_file(folder() / "report.html", 1 << 20), HasSubstr("<td>powersgd:2</td>"));
}

TEST_F(ScalingStudyTest, each_global_batch_is_trained) {
  const std::string data = (root_.path() / "data").string();
  ASSERT_EQ(
      run_program({built_program("make_shards").string(), "synthetic", "--samples", "200", "--output", data}).exit_code,
      0);
  const ProgramResult result = measure(2, {"--repeats", "1", "--threads", "1", "--ranks", "1", "--global-batch", "5",
                                           "--accuracy-data", data, "--accuracy-epochs", "1", "--accuracy-seeds", "2"});
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  const Study study = read_study(folder() / "study.json");
  ASSERT_EQ(study.accuracies.size(), 2U);
  EXPECT_THAT(study.accuracies[0].missing, HasSubstr("2 ranks"));
  EXPECT_EQ(study.accuracies[1].accuracies.size(), 2U);
  EXPECT_THAT(result.errors + result.output, Not(HasSubstr("weights of this training will be lost")));
  EXPECT_THAT(result.output, HasSubstr(study.accuracies[0].missing));
  EXPECT_THAT(read_file(folder() / "report.html", 1 << 20), HasSubstr(" 1 epoch<"));
}

TEST_F(ScalingStudyTest, what_cannot_be_is_refused_before_the_work) {
  const ProgramResult many = measure(1, {"--ranks", "2"});
  EXPECT_EQ(many.exit_code, 2);
  EXPECT_THAT(many.errors, AllOf(HasSubstr("--ranks"), HasSubstr("2 ranks")));
  const ProgramResult servers = measure(1, {"--sweep-servers", "1"});
  EXPECT_EQ(servers.exit_code, 2);
  EXPECT_THAT(servers.errors, AllOf(HasSubstr("1 rank"), HasSubstr("--servers")));
  const ProgramResult nothing = measure(1, {"--accuracy-data", (root_.path() / "nothing").string()});
  EXPECT_NE(nothing.exit_code, 0);
  EXPECT_FALSE(std::filesystem::exists(folder() / "study.json"));
  std::filesystem::create_directories(folder());
  write_file_atomically(folder() / "study.json", std::string_view("{\"mine\": 1}\n"));
  const ProgramResult other = measure(1, {});
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.errors, HasSubstr("'" + (folder() / "study.json").string() + "'"));
}

TEST_F(ScalingStudyTest, an_earlier_study_is_kept) {
  ASSERT_EQ(measure(1, {"--repeats", "2", "--threads", "1"}).exit_code, 0);
  const std::string first = read_file(folder() / "study.json", 1 << 20);
  const ProgramResult again = measure(1, {"--repeats", "1", "--threads", "1"});
  ASSERT_EQ(again.exit_code, 0) << again.errors;
  EXPECT_THAT(again.errors + again.output, HasSubstr("'" + (folder() / "set-aside-1").string() + "'"));
  EXPECT_EQ(read_file(folder() / "set-aside-1/study.json", 1 << 20), first);
  for (const char* name : {"study.csv", "report.html"}) {
    EXPECT_TRUE(std::filesystem::exists(folder() / "set-aside-1" / name)) << name;
    EXPECT_TRUE(std::filesystem::exists(folder() / name)) << name;
  }
  EXPECT_FALSE(std::filesystem::exists(folder() / "lock"));
}

TEST_F(ScalingStudyTest, two_do_not_write_into_one_folder) {
  const FolderLock other(folder(), "--output");
  const ProgramResult result = measure(1, {});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.errors, HasSubstr("'" + folder().string() + "'"));
}

TEST_F(ScalingStudyTest, a_full_disk_costs_no_figures) {
  std::filesystem::create_directories(folder());
  if (::mount("tmpfs", folder().c_str(), "tmpfs", 0, "size=8k") != 0) GTEST_SKIP() << "mount is not permitted here";
  const ProgramResult result = measure(1, {"--repeats", "2", "--threads", "1"});
  ::umount2(folder().c_str(), MNT_DETACH);
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.errors, HasSubstr("No space left on device"));
  EXPECT_THAT(result.output, HasSubstr("weak scaling, 6 samples "));
}

}  // namespace lockstep::scaling_study_test
