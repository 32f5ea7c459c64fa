// What evaluate says of a trained model, on several ranks and on data of all kinds.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/io/file.hpp"
#include "support/program.hpp"
#include "support/samples/small_data_set.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::evaluate_test {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class EvaluateTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryFolder;
    const auto done = [](const std::vector<std::string>& words) {
      const ProgramResult result = run_program(words);
      ASSERT_EQ(result.exit_code, 0) << result.errors;
    };
    done({built_program("make_shards"), "synthetic", "--samples", "600", "--output", at("pictures")});
    for (const char* split : {"train", "test"}) write_small_data_set(at("digits") / split, {28, 28, 1}, 256, 100);
    done({built_program("train_cifar"), "--data", at("pictures"), "--model", "lenet", "--epochs", "1", "--output",
          at("run"), "--threads", "1", "--global-batch", "60"});
  }
  static void TearDownTestSuite() { delete folder_; }

  static fs::path at(const std::string& name) { return folder_->path() / name; }

  // The same pictures, where the test split says another mean and deviation.
  static fs::path with_another_mean(const std::string& name) {
    const fs::path data = at(name);
    fs::create_directories(data);
    fs::create_directory_symlink(at("pictures") / "train", data / "train");
    fs::copy(at("pictures") / "test", data / "test", fs::copy_options::recursive);
    Manifest manifest = read_manifest(data / "test");
    manifest.mean = {0.25F, 0.5F, 0.75F};
    manifest.deviation = {0.125F, 0.125F, 0.125F};
    write_manifest(data / "test", manifest);
    return data;
  }

  static nlohmann::json summary_of(const std::string& run) {
    return nlohmann::json::parse(read_file(at(run) / "summary.json", 1 << 20));
  }

 private:
  static TemporaryFolder* folder_;
};

TemporaryFolder* EvaluateTest::folder_ = nullptr;

TEST_F(EvaluateTest, gives_the_trained_accuracy_at_any_number_of_ranks) {
  const double accuracy = summary_of("run")["test_accuracy"];
  std::vector<std::string> said;
  for (const int ranks : {1, 2, 3}) {
    const fs::path predictions = at("predictions" + std::to_string(ranks));
    const ProgramResult result =
        run_program(under_mpirun(ranks, {built_program("evaluate"), "--model-file", at("run/model.h5"), "--data",
                                         at("pictures"), "--threads", "1", "--predictions", predictions}));
    ASSERT_EQ(result.exit_code, 0) << result.errors;
    said.push_back(result.output + read_file(predictions, 1 << 20));
  }
  EXPECT_EQ(said[0], said[1]);
  EXPECT_EQ(said[0], said[2]);
  EXPECT_THAT(said[0], HasSubstr(fmt::format("top-1    {:.2f} %\n", 100 * accuracy)));
  EXPECT_THAT(said[0], HasSubstr("confusion (rows: label, columns: prediction)"));
}

TEST_F(EvaluateTest, test_time_augmentation_is_named_beside_the_accuracy_without_it) {
  const double accuracy = summary_of("run")["test_accuracy"];
  for (const std::string augmentation : {"none", "flip", "flip-shift"}) {
    const fs::path file = at(augmentation + ".json");
    const ProgramResult result =
        run_program({built_program("evaluate"), "--model-file", at("run/model.h5"), "--data", at("pictures"),
                     "--threads", "1", "--test-augment", augmentation, "--json", file});
    ASSERT_EQ(result.exit_code, 0) << result.errors;
    const nlohmann::json json = nlohmann::json::parse(read_file(file, 1 << 20));
    EXPECT_EQ(json["test_augment"], augmentation);
    EXPECT_EQ(json["test_flip"], augmentation != "none");
    EXPECT_EQ(json["plain_accuracy"], augmentation == "none" ? nlohmann::json() : nlohmann::json(accuracy));
    const std::string without = fmt::format(" % with {} ({:.2f} % without)\n", augmentation, 100 * accuracy);
    EXPECT_EQ(result.output.find(without) != std::string::npos, augmentation != "none") << result.output;
  }
}

TEST_F(EvaluateTest, a_damaged_model_file_is_refused) {
  const fs::path damaged = at("damaged.h5");
  std::string bytes = read_file(at("run/model.h5"), 1 << 24);
  write_file_atomically(damaged, bytes.substr(0, bytes.size() / 2));
  const ProgramResult result =
      run_program({built_program("evaluate"), "--model-file", damaged, "--data", at("pictures")});
  EXPECT_EQ(result.exit_code, 65);
  EXPECT_THAT(result.errors, HasSubstr("'" + damaged.string() + "'"));
}

TEST_F(EvaluateTest, data_that_the_model_was_not_trained_on_are_refused) {
  const ProgramResult result =
      run_program({built_program("evaluate"), "--model-file", at("run/model.h5"), "--data", at("digits")});
  EXPECT_EQ(result.exit_code, 2) << result.errors;
  EXPECT_THAT(result.errors, AllOf(HasSubstr("32 x 32 x 3"), HasSubstr("'small'"), HasSubstr("28 x 28 x 1")));
}

// New pictures of the same classes have a mean of their own.
TEST_F(EvaluateTest, normalises_as_the_training_did) {
  const fs::path others = with_another_mean("others");
  const auto evaluated = [](const fs::path& data) {
    return run_program(
        {built_program("evaluate"), "--model-file", at("run/model.h5"), "--data", data, "--threads", "1"});
  };
  const std::string own = evaluated(at("pictures")).output;
  const std::string other = evaluated(others).output;
  const auto result_in = [](const std::string& said) { return said.substr(said.find("\nsamples  ")); };
  EXPECT_EQ(result_in(other), result_in(own));
  EXPECT_THAT(own, Not(HasSubstr("(0.2500, 0.5000, 0.7500)")));
  EXPECT_THAT(other, AllOf(HasSubstr("(0.2500, 0.5000, 0.7500)"), HasSubstr("(0.1250, 0.1250, 0.1250)")));
  EXPECT_THAT(other, HasSubstr("model: lenet, in fp32 on cpu: "));
  EXPECT_THAT(other, HasSubstr("data: synthetic ("));
}

TEST_F(EvaluateTest, a_training_tests_by_the_mean_of_what_it_learns_from) {
  const ProgramResult trained =
      run_program({built_program("train_cifar"), "--data", with_another_mean("mixed"), "--model", "lenet", "--epochs",
                   "1", "--output", at("of mixed"), "--threads", "1", "--global-batch", "60"});
  ASSERT_EQ(trained.exit_code, 0) << trained.errors;
  EXPECT_THAT(trained.output, HasSubstr("samples of 'synthetic' "));
  EXPECT_EQ(summary_of("of mixed")["weights_hash"], summary_of("run")["weights_hash"]);
  EXPECT_EQ(summary_of("of mixed")["test_loss"], summary_of("run")["test_loss"]);
}

}  // namespace lockstep::evaluate_test
