// The real programs, from shards to a tested model: what they write, say and return.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/io/file.hpp"
#include "support/program.hpp"
#include "support/samples/small_data_set.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::train_cifar_test {

namespace fs = std::filesystem;

class TrainCifarTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryFolder;
    const ProgramResult made =
        run_program({built_program("make_shards"), "synthetic", "--samples", "600", "--output", pictures().string()});
    ASSERT_EQ(made.exit_code, 0) << made.errors;
    for (const char* split : {"train", "test"}) write_small_data_set(digits() / split, {28, 28, 1}, 256, 100);
  }
  static void TearDownTestSuite() { delete folder_; }

  static fs::path pictures() { return folder_->path() / "pictures"; }
  static fs::path digits() { return folder_->path() / "digits"; }

  static std::vector<std::string> training(const fs::path& output, const std::vector<std::string>& more = {}) {
    std::vector<std::string> words = {built_program("train_cifar"),
                                      "--data",
                                      pictures(),
                                      "--model",
                                      "lenet",
                                      "--epochs",
                                      "1",
                                      "--output",
                                      output,
                                      "--threads",
                                      "1",
                                      "--global-batch",
                                      "60",
                                      "--report-every",
                                      "3"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  static nlohmann::json summary(const fs::path& output) {
    return nlohmann::json::parse(read_file(output / "summary.json", 1 << 20));
  }
  static void expect_failure(const std::vector<std::string>& arguments, int code,
                             const std::vector<std::string>& subjects) {
    const ProgramResult result = run_program(arguments);
    EXPECT_EQ(result.exit_code, code) << result.errors;
    for (const std::string& subject : subjects) {
      EXPECT_NE(result.errors.find(subject), std::string::npos) << subject << "\n" << result.errors;
    }
  }

  // A model trained once, for the tests of what comes after.
  static fs::path model() {
    static const fs::path output = [] {
      EXPECT_EQ(run_program(training(folder_->path() / "model")).exit_code, 0);
      return folder_->path() / "model";
    }();
    return output / "model.h5";
  }

  static TemporaryFolder* folder_;
};

TemporaryFolder* TrainCifarTest::folder_ = nullptr;

TEST_F(TrainCifarTest, one_rank_needs_no_launcher_and_leaves_three_files) {
  const fs::path output = folder_->path() / "one rank";
  const ProgramResult result = run_program(training(output));
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  const nlohmann::json said = summary(output);
  EXPECT_EQ(said["ranks"], 1);
  EXPECT_EQ(said["steps"], 10);
  EXPECT_EQ(said["epochs"], 1);
  EXPECT_EQ(said["global_batch"], 60);
  EXPECT_EQ(said["seed"], 0);
  EXPECT_EQ(said["weights_hash"].get<std::string>().size(), 16U);
  EXPECT_GT(said["samples_per_second"], 0);
  EXPECT_FALSE(said["versions"].empty());
  std::ifstream metrics(output / "metrics.jsonl");
  std::vector<nlohmann::json> objects;
  for (std::string line; std::getline(metrics, line);) objects.push_back(nlohmann::json::parse(line));
  ASSERT_EQ(objects.size(), 5U);  // steps 3, 6, 9, 10 and the test
  EXPECT_EQ(objects.back()["kind"], "test");
  EXPECT_EQ(objects.back()["accuracy"], said["test_accuracy"]);
  EXPECT_NE(result.output.find("]  ranks: 1 on " + said["hosts"].items().begin().key() + "\n"), std::string::npos)
      << result.output;
  EXPECT_NE(result.output.find("batch: 60 per rank"), std::string::npos) << result.output;
  EXPECT_NE(result.output.find("epoch 1/1  step 3/10  loss "), std::string::npos) << result.output;
}

TEST_F(TrainCifarTest, the_same_seed_gives_the_same_weights_and_another_seed_others) {
  std::vector<std::string> hashes;
  for (const char* seed : {"1", "1", "2"}) {
    const fs::path output = folder_->path() / ("seeds" + std::to_string(hashes.size()));
    ASSERT_EQ(run_program(training(output, {"--seed", seed})).exit_code, 0);
    hashes.push_back(summary(output)["weights_hash"]);
  }
  EXPECT_EQ(hashes[0], hashes[1]);
  EXPECT_NE(hashes[0], hashes[2]);
}

TEST_F(TrainCifarTest, three_ranks_learn_what_one_rank_with_three_parts_learns) {
  const fs::path three = folder_->path() / "three";
  const ProgramResult result = run_program(under_mpirun(3, training(three, {"--reduce", "shared"})));
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  const fs::path one = folder_->path() / "three parts";
  ASSERT_EQ(run_program(training(one, {"--accumulate", "3"})).exit_code, 0);
  EXPECT_EQ(summary(three)["ranks"], 3);
  EXPECT_NEAR(summary(three)["test_accuracy"].get<double>(), summary(one)["test_accuracy"].get<double>(), 0.05);
  EXPECT_NE(result.output.find("batch: 20 per rank"), std::string::npos) << result.output;
}

TEST_F(TrainCifarTest, digits_train_with_batch_norm_in_bf16) {
  const fs::path output = folder_->path() / "digits run";
  const ProgramResult result =
      run_program({built_program("train_cifar"), "--data", digits(), "--model", "convnet", "--epochs", "1", "--output",
                   output, "--threads", "1", "--precision", "bf16", "--batch-per-rank", "16", "--accumulate", "2"});
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_EQ(summary(output)["global_batch"], 32);
  EXPECT_EQ(summary(output)["precision"], "bf16");
}

TEST_F(TrainCifarTest, inspect_says_what_each_file_is) {
  const auto said = [](const fs::path& path) { return run_program({built_program("inspect"), path}).output; };
  EXPECT_TRUE(
      said(model()).starts_with("model 'lenet' (format 3)\n  step       10\n"
                                "  takes      32 x 32 pixels, 3 channels\n"))
      << said(model());
  EXPECT_TRUE(said(pictures() / "test").starts_with("data set 'synthetic' (format 1)\n"));
  EXPECT_EQ(said(pictures() / "test" / "manifest.json"), said(pictures() / "test"));
  EXPECT_TRUE(said(pictures() / "test" / "test-00000.h5").starts_with("shard of data set 'synthetic'\n"));
  const fs::path other = folder_->path() / "notes.txt";
  std::ofstream(other) << "something else";
  expect_failure({built_program("inspect"), other}, 2, {"'" + other.string() + "'", "make_shards", "train_cifar"});
}

TEST_F(TrainCifarTest, wrong_options_are_told_in_one_sentence) {
  const fs::path output = folder_->path() / "never";
  expect_failure(training(output, {"--epoch", "3"}), 2, {"'--epoch'", "--epochs"});
  expect_failure(training(output, {"--schedule", "linear"}), 2, {"--schedule", "'linear'", "one-cycle"});
  expect_failure({built_program("train_cifar"), "--model", "lenet"}, 2, {"--data"});
  expect_failure(training(output, {"--batch-per-rank", "8"}), 2, {"--global-batch", "--batch-per-rank"});
  expect_failure(training(output, {"--accumulate", "7"}), 2, {"--global-batch 60", "7", "56", "63"});
  expect_failure({built_program("train_cifar"), "--data", pictures(), "--global-batch", "1000"}, 2,
                 {"1000", "--global-batch", "600"});
  EXPECT_FALSE(fs::exists(output / "metrics.jsonl"));
}

TEST_F(TrainCifarTest, help_ends_with_two_examples) {
  const ProgramResult result = run_program({built_program("train_cifar"), "--help"});
  EXPECT_EQ(result.exit_code, 0);
  const std::string examples =
      "\nExamples:\n  train_cifar --data data/cifar10 --output runs/r20\n"
      "  mpirun -n 4 train_cifar --data data/cifar10 --epochs 30 --output runs/longer\n";
  EXPECT_TRUE(result.output.find(examples) != std::string::npos) << result.output;
}

// Without data, and with no more on the output than JSON.
TEST_F(TrainCifarTest, a_recipe_is_printed_and_nothing_else_is_done) {
  const ProgramResult result =
      run_program({built_program("train_cifar"), "--recipe", "pai-lite", "--epochs", "7", "--print-recipe"});
  EXPECT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_TRUE(result.output.starts_with("{\n \"accumulate\": 1,\n")) << result.output;
  EXPECT_TRUE(result.output.ends_with("}\n")) << result.output;
  EXPECT_NE(result.output.find(" \"epochs\": 7,\n"), std::string::npos) << result.output;
  EXPECT_NE(result.output.find(" \"model\": \"resnet18\",\n"), std::string::npos) << result.output;
}

TEST_F(TrainCifarTest, what_no_training_would_take_is_not_printed) {
  const std::vector<std::pair<std::vector<std::string>, std::vector<std::string>>> mistakes = {
      {{"--epocs", "7"}, {"'--epocs'", "--epochs"}},
      {{"--model", "banana"}, {"--model", "'banana'", "resnet101"}},
      {{"--recipe", "rn50-ffcv-16", "--image-size", "128"}, {"--image-size-ramp 160:11:13", "--image-size 128"}}};
  for (const auto& [options, subjects] : mistakes) {
    std::vector<std::string> words = {built_program("train_cifar"), "--print-recipe"};
    words.insert(words.end(), options.begin(), options.end());
    expect_failure(words, 2, subjects);
    EXPECT_EQ(run_program(words).output, "");
  }
}

TEST_F(TrainCifarTest, a_model_that_nobody_knows_is_answered_with_those_that_exist) {
  const ProgramResult result = run_program({built_program("train_cifar"), "--data", pictures(), "--model", "resnet81"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.errors.find("resnet18"), std::string::npos) << result.errors;
}

// It was told after minutes of copying, or as data that were not there.
TEST_F(TrainCifarTest, a_wrong_model_is_told_before_the_data_are_opened) {
  const ProgramResult result = run_program({built_program("train_cifar"), "--data", "nowhere", "--model", "banana"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.errors.find("'banana'"), std::string::npos) << result.errors;
}

// Three ranks, and a hundred pictures, were refused the program's own default.
TEST_F(TrainCifarTest, the_default_batch_fits_itself_to_ranks_and_data_and_says_so) {
  const fs::path few = folder_->path() / "few";
  ASSERT_EQ(run_program({built_program("make_shards"), "synthetic", "--samples", "100", "--output", few}).exit_code, 0);
  const auto train = [&](int ranks, const fs::path& data, const std::vector<std::string>& more = {}) {
    std::vector<std::string> words = {
        built_program("train_cifar"), "--data", data, "--model", "lenet", "--epochs", "1", "--threads", "1"};
    words.insert(words.end(), more.begin(), more.end());
    const ProgramResult result = run_program(under_mpirun(ranks, words));
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    return result.output;
  };
  const auto expect = [](const std::string& output, const std::vector<std::string>& subjects) {
    for (const std::string& subject : subjects) {
      EXPECT_NE(output.find(subject), std::string::npos) << subject << "\n" << output;
    }
  };
  expect(train(3, pictures()), {"global batch: 126 instead of 128", "3 ranks x 1 ", "--global-batch"});
  expect(train(1, few), {"global batch: 100 instead of 128", "100 samples", "--global-batch"});
  expect(train(1, few), {"2.30", "--lr 0.05"});
  EXPECT_EQ(train(1, few, {"--lr", "0.05"}).find("--lr 0.05"), std::string::npos);
  expect(train(3, few), {"global batch: 99 instead of 128", "100 samples", "3 ranks x 1 ", "--global-batch"});
  for (const int ranks : {1, 3}) {
    expect(train(ranks, pictures(), {"--virtual-ranks", "12"}),
           {"global batch: 120 instead of 128", "12", "--global-batch"});
  }
  const std::string usual = train(2, pictures());
  EXPECT_EQ(usual.find("global batch:"), std::string::npos) << usual;
}

TEST_F(TrainCifarTest, a_resumed_training_keeps_the_batch_that_was_fitted) {
  const fs::path output = folder_->path() / "fitted";
  const auto words = [&](const std::string& epochs) {
    return std::vector<std::string>{built_program("train_cifar"),
                                    "--data",
                                    pictures(),
                                    "--model",
                                    "lenet",
                                    "--epochs",
                                    epochs,
                                    "--threads",
                                    "1",
                                    "--output",
                                    output};
  };
  ASSERT_EQ(run_program(under_mpirun(3, words("1"))).exit_code, 0);
  const ProgramResult result = run_program(under_mpirun(2, words("2")));
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_NE(result.output.find("  global batch: 126 instead of 128"), std::string::npos) << result.output;
  EXPECT_EQ(summary(output)["global_batch"], 126);
  std::vector<std::string> named = words("3");
  named.insert(named.end(), {"--global-batch", "128"});
  expect_failure(named, 2, {"--global-batch 126", "128", "--init-from '" + output.string() + "'", "--resume never"});
}

TEST_F(TrainCifarTest, missing_data_are_named) {
  const fs::path nowhere = folder_->path() / "nowhere";
  const ProgramResult result = run_program({built_program("train_cifar"), "--data", nowhere});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.errors.find("'" + nowhere.string() + "'"), std::string::npos) << result.errors;
}

TEST_F(TrainCifarTest, a_folder_that_cannot_be_written_is_told_before_the_training) {
  const fs::path file = folder_->path() / "a file";
  std::ofstream(file) << "in the way";
  expect_failure(training(file / "run"), 2, {"'" + (file / "run").string() + "'", "--output"});
}

TEST_F(TrainCifarTest, a_diverging_training_ends_with_79_on_several_ranks_too) {
  const std::vector<std::string> words = {"--lr", "1e9", "--lr-batch", "0", "--warmup", "0", "--schedule", "constant"};
  const ProgramResult one = run_program(training(folder_->path() / "diverged", words));
  EXPECT_EQ(one.exit_code, 79) << one.errors;
  const auto checkpoint = [](const fs::path& output) {
    return "'" + (output / "checkpoints" / "step-000000000000.h5").string() + "'";
  };
  EXPECT_NE(one.errors.find(checkpoint(folder_->path() / "diverged")), std::string::npos) << one.errors;
  EXPECT_NE(one.errors.find("1e+09"), std::string::npos) << one.errors;
  const fs::path output = folder_->path() / "diverged together";
  EXPECT_NE(run_program(under_mpirun(2, training(output, words))).exit_code, 0);
  const nlohmann::json failure = nlohmann::json::parse(read_file(output / "failure.json", 1 << 20));
  EXPECT_EQ(failure["code"], 79);
  EXPECT_NE(failure["sentence"].get<std::string>().find(checkpoint(output)), std::string::npos) << failure;
}

// Its only step has a loss that is a number. The training was "done", and its weights, all NaN, were the best model's.
TEST_F(TrainCifarTest, a_test_whose_loss_is_no_number_ends_a_training_with_79) {
  const fs::path output = folder_->path() / "diverged in a test";
  const ProgramResult result =
      run_program(training(output, {"--lr", "1e9", "--lr-batch", "0", "--weight-decay", "1e9", "--warmup", "0",
                                    "--schedule", "constant", "--max-steps", "1"}));
  EXPECT_EQ(result.exit_code, 79) << result.errors;
  EXPECT_NE(result.errors.find("after step 1 "), std::string::npos) << result.errors;
  EXPECT_NE(result.errors.find("1e+09"), std::string::npos) << result.errors;
  EXPECT_EQ(summary(output)["state"], "diverged");
  EXPECT_FALSE(fs::exists(output / "model-best.h5"));
  EXPECT_FALSE(fs::exists(output / "model.h5"));
}

TEST_F(TrainCifarTest, a_test_set_with_other_classes_than_the_training_set_is_refused) {
  for (const std::string split : {"test", "validation"}) {
    const fs::path mixed = folder_->path() / ("mixed " + split);
    fs::create_directories(mixed);
    fs::create_directory_symlink(pictures() / "train", mixed / "train");
    fs::create_directory_symlink(digits() / "test", mixed / split);
    if (split != "test") fs::create_directory_symlink(pictures() / "test", mixed / "test");
    expect_failure({built_program("train_cifar"), "--data", mixed, "--model", "lenet"}, 65,
                   {"'" + (mixed / "train").string() + "'", "'" + (mixed / split).string() + "'"});
  }
}

}  // namespace lockstep::train_cifar_test
