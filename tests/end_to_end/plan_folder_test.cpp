// train_cifar and the folder where it keeps kernel choices.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/io/file.hpp"
#include "support/program.hpp"
#include "support/samples/small_data_set.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::plan_folder_test {

namespace fs = std::filesystem;

class PlanFolderTest : public testing::Test {
 protected:
  PlanFolderTest() {
    for (const char* split : {"train", "test"}) write_small_data_set(path("digits") / split, {28, 28, 1}, 120, 60);
  }

  fs::path path(const std::string& name) const { return folder_.path() / name; }

  // The summary of a training, whose choices go where `options` say or, without any, into the user's cache.
  nlohmann::json train(const std::vector<std::string>& options) {
    std::vector<std::string> words = {built_program("train_cifar"), "--data", path("digits"), "--model", "convnet"};
    const fs::path output = path("run");
    for (const char* word : {"--epochs", "1", "--global-batch", "60", "--threads", "1"}) words.emplace_back(word);
    words.insert(words.end(), {"--output", output});
    words.insert(words.end(), options.begin(), options.end());
    const ProgramResult result = run_program(words, {{"XDG_CACHE_HOME", path("cache")}});
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    return nlohmann::json::parse(read_file(output / "summary.json", 1 << 20));
  }

 private:
  TemporaryFolder folder_;
};

TEST_F(PlanFolderTest, where_a_rule_chooses_kernels_nothing_is_measured_and_nothing_kept) {
  for (const std::vector<std::string>& options :
       {std::vector<std::string>{}, {"--plan-folder", path("plans")}, {"--plan-folder", ""}}) {
    const nlohmann::json summary = train(options);
    EXPECT_EQ(summary["kernels_recalled"], 0);
    EXPECT_EQ(summary["kernels_measured"], 0);
    EXPECT_FALSE(fs::exists(path("cache")));
    EXPECT_FALSE(fs::exists(path("plans")));
  }
}

}  // namespace lockstep::plan_folder_test
