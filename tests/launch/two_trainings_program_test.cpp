// A program that runs two trainings ends with the failure of one, when the other one has ended.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/io/file.hpp"
#include "support/program.hpp"
#include "support/samples/small_data_set.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::two_trainings_program_test {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

class TwoTrainingsProgramTest : public testing::Test {
 protected:
  TwoTrainingsProgramTest() {
    for (const char* half : {"0", "1"}) {
      write_small_data_set(root() / "data" / half / "train", {32, 32, 3}, 160, 160, SampleStore::images, 1 << 15);
      write_small_data_set(root() / "data" / half / "test", {32, 32, 3}, 40, 40);
    }
  }

  fs::path root() const { return folder_.path(); }
  nlohmann::json json_in(const std::string& file) const {
    return nlohmann::json::parse(read_file(root() / "output" / file, 1 << 20));
  }
  ProgramResult run(const std::vector<std::string>& more) const {
    std::vector<std::string> words = {built_program("two_trainings_program").string(), (root() / "data").string(),
                                      (root() / "output").string()};
    words.insert(words.end(), more.begin(), more.end());
    return run_program(under_mpirun(4, words));
  }

  TemporaryFolder folder_;
};

TEST_F(TwoTrainingsProgramTest, both_are_done) {
  const ProgramResult result = run({});
  EXPECT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_EQ(json_in("0/summary.json")["state"], "done");
  EXPECT_EQ(json_in("1/summary.json")["state"], "done");
}

// The first one trains for longer than the hang timeout after the second one has failed.
TEST_F(TwoTrainingsProgramTest, one_fails_and_the_other_one_goes_on) {
  const fs::path shard = root() / "data/1/train/shard-0.h5";
  std::fstream(shard, std::ios::in | std::ios::out | std::ios::binary)
          .seekp(static_cast<std::streamoff>(fs::file_size(shard) / 2))
      << std::string(20'000, '\xA5');
  const ProgramResult result = run({"10"});
  EXPECT_EQ(result.exit_code, 65) << result.errors;
  EXPECT_EQ(json_in("0/summary.json")["state"], "stopped");
  EXPECT_GT(json_in("0/summary.json")["seconds"], 5);
  EXPECT_EQ(json_in("1/summary.json")["state"], "failed");
  const nlohmann::json failure = json_in("1/failure.json");
  EXPECT_EQ(failure["code"], 65);
  EXPECT_GE(failure["rank"], 2);
  EXPECT_THAT(result.errors, HasSubstr(failure["sentence"].get<std::string>()));
  EXPECT_THAT(result.errors, Not(HasSubstr("MPI_ABORT")));
}

}  // namespace lockstep::two_trainings_program_test
