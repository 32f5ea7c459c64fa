// check_cluster as people and job scripts meet it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/io/file.hpp"
#include "support/program.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::check_cluster_test {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

class CheckClusterTest : public testing::Test {
 protected:
  // A machine that tests share computes at no even pace.
  void SetUp() override { write_file_atomically(floors(), R"({"compute_share": 0})"); }

  ProgramResult check(int ranks, const std::vector<std::string>& options) const {
    std::vector<std::string> arguments = {built_program("check_cluster").string(),
                                          "--output",
                                          (folder_.path() / "runs").string(),
                                          "--model",
                                          "resnet20",
                                          "--batch",
                                          "4",
                                          "--floors",
                                          floors().string()};
    arguments.insert(arguments.end(), options.begin(), options.end());
    return run_program(ranks == 1 ? arguments : under_mpirun(ranks, arguments),
                       {{"LOCKSTEP_VERDICT", verdict().string()}});
  }
  nlohmann::json read(const fs::path& file) const { return nlohmann::json::parse(read_file(file, 1 << 20)); }

  fs::path floors() const { return folder_.path() / "floors.json"; }
  fs::path verdict() const { return folder_.path() / "verdict.json"; }
  TemporaryFolder folder_;
};

TEST_F(CheckClusterTest, all_is_well) {
  const fs::path json = folder_.path() / "cluster.json";
  const fs::path written = folder_.path() / "new.json";
  const ProgramResult result = check(3, {"--json", json.string(), "--write-floors", written.string()});
  EXPECT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_THAT(result.output, HasSubstr("1 node with 3 ranks: "));
  EXPECT_FALSE(fs::exists(verdict()));
  EXPECT_FALSE(fs::exists(folder_.path() / "runs"));
  const nlohmann::json cluster = read(json);
  EXPECT_EQ(cluster["ranks"].size(), 3);
  EXPECT_EQ(cluster["nodes"][0]["ranks"], nlohmann::json({0, 1, 2}));
  for (const nlohmann::json& rank : cluster["ranks"]) EXPECT_TRUE(rank["wrong_part"].is_null());
  EXPECT_GT(cluster["sums"].back()["bus_bytes_per_second"], 0);
  EXPECT_GT(read(written)["samples_per_second"], 0);
  const nlohmann::json settings = read(written)["settings"];
  EXPECT_EQ(settings["model"], "resnet20");
  EXPECT_EQ(settings["batch"], 4);
  EXPECT_EQ(settings["reduce"], "auto");
  EXPECT_NE(settings["device"], "auto") << "the device in use";
}

TEST_F(CheckClusterTest, one_rank_has_no_sums_to_check) {
  const ProgramResult result = check(1, {});
  EXPECT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_THAT(result.output, HasSubstr("1 node with 1 rank: "));
}

TEST_F(CheckClusterTest, what_stays_below_a_floor_is_told_with_its_code) {
  write_file_atomically(floors(), R"({"compute_share": 0, "samples_per_second": 1e12})");
  const ProgramResult result = check(2, {});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.output, HasSubstr("bad cluster: "));
  EXPECT_THAT(result.errors, AllOf(HasSubstr("1000000000000 samples/s"), HasSubstr("does not state the settings")));
  EXPECT_EQ(read(verdict())["code"], 1);
  EXPECT_FALSE(read(verdict()).contains("bad_hosts"));
}

// The floors of one model were held against another one, and LOCKSTEP_CHECK refused every attempt.
TEST_F(CheckClusterTest, floors_are_compared_with_the_settings_that_they_were_measured_with) {
  write_file_atomically(floors(), R"({"compute_share": 0, "settings": {"model": "lenet", "batch": 4, "threads": 1}})");
  const fs::path json = folder_.path() / "cluster.json";
  const ProgramResult same = run_program({built_program("check_cluster").string(), "--output", folder_.path().string(),
                                          "--floors", floors().string(), "--json", json.string()});
  EXPECT_EQ(same.exit_code, 0) << same.errors;
  EXPECT_EQ(read(json)["model"], "lenet");
  const ProgramResult other = check(1, {});
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.errors, AllOf(HasSubstr(floors().string()), HasSubstr("lenet"), HasSubstr("resnet20")));
  for (const char* wrong : {R"({"settings": {"batch": 0}})", R"({"settings": {"threads": "many"}})",
                            R"({"settings": {"colour": "red"}})", R"({"settings": {"model": 7}})"}) {
    write_file_atomically(floors(), wrong);
    EXPECT_EQ(run_program({built_program("check_cluster").string(), "--floors", floors().string()}).exit_code, 2)
        << wrong;
  }
}

TEST_F(CheckClusterTest, files_of_another_kind_are_not_replaced) {
  const fs::path mine = folder_.path() / "mine";
  write_file_atomically(mine, "my thesis");
  for (const char* option : {"--json", "--write-floors"}) {
    const ProgramResult result = check(1, {option, mine.string()});
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.errors, AllOf(HasSubstr("'" + mine.string() + "'"), HasSubstr(option)));
  }
  EXPECT_EQ(read_file(mine, 100), "my thesis");
}

}  // namespace lockstep::check_cluster_test
