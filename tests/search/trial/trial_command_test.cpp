#include "search/trial/trial_command.hpp"

#include <gmock/gmock.h>

#include "support/messages.hpp"
#include "support/samples/small_data_set.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::trial_command_test {

using testing::ElementsAre;
using Lines = std::vector<std::string>;

class TrialCommandTest : public testing::Test {
 protected:
  TrialCommandTest() {
    for (const Split split : {Split::train, Split::test}) {
      write_small_data_set(split_folder(data(), split), {2, 2, 3}, 1000, 1000);
    }
    space_.file = "space.yaml";
    space_.lines = {1, 2, 3, 4};
    space_.program = "./mine";
    space_.arguments = {"--data", data().string()};
    space_.searcher.max_length = 100;
  }

  std::filesystem::path data() const { return folder_.path() / "data"; }
  // A program that prints this recipe.
  RunProgram prints(const std::string& recipe) {
    return [this, recipe](const Lines& words) {
      asked_.push_back(words);
      return ProgramOutput{0, {"a warning", "{", recipe, "}"}};
    };
  }
  static RunProgram refuses(int code, const std::string& line) {
    return [code, line](const Lines&) { return ProgramOutput{code, {line}}; };
  }

  TemporaryFolder folder_;
  Space space_;
  std::vector<Lines> asked_;
};

TEST_F(TrialCommandTest, lengths_are_steps_of_the_trials_batch) {
  TrialCommands commands(space_, prints(R"("global-batch": 40)"));
  EXPECT_EQ(commands.length({"--lr=1", "--global-batch=40"}, 25).steps, 625);
  EXPECT_EQ(commands.length({"--lr=1", "--global-batch=40"}, 100).epochs, 100);
  space_.unit = LengthUnit::batches;
  EXPECT_EQ(commands.length({}, 51).steps, 51);
  EXPECT_EQ(commands.length({}, 51).epochs, 4);  // of the whole 100 batches
  space_.unit = LengthUnit::records;
  EXPECT_EQ(commands.length({"--global-batch=40"}, 90).steps, 2);
  EXPECT_EQ(commands.length({"--global-batch=40"}, 1).steps, 1);
}

TEST_F(TrialCommandTest, the_default_batch_adapts_to_ranks_and_a_stated_one_does_not) {
  space_.ranks_per_trial = 3;
  TrialCommands commands(space_, prints(R"("global-batch": 100)"));
  EXPECT_EQ(commands.length({}, 1).steps, 10);  // 99 samples
  expect_error(Failure::usage, {"--global-batch", "100", "3 ranks"},
               [&] { commands.length({"--global-batch=100"}, 1); });
  TrialCommands by_rank(space_, prints(R"("batch-per-rank": 10, "global-batch": null, "accumulate": 2)"));
  EXPECT_EQ(by_rank.length({"--batch-per-rank=10"}, 1).steps, 16);
  TrialCommands large(space_, prints(R"("global-batch": 3000)"));
  expect_error(Failure::usage, {"3000", "1000"}, [&] { large.length({"--global-batch=3000"}, 1); });
}

TEST_F(TrialCommandTest, the_command_has_the_settings_then_the_length) {
  const TrialCommands commands(space_, prints(R"("global-batch": 40)"));
  EXPECT_THAT(commands.words({"--lr=1"}, {10, 4, 25}, "out", 2),
              ElementsAre("./mine", "--data", data().string(), "--lr=1", "--epochs=4", "--max-steps=25", "--output=out",
                          "--threads=2"));
  EXPECT_EQ(commands.words({"--threads=7"}, {10, 4, 25}, "out", 2).back(), "--output=out");
  EXPECT_EQ(commands.words({}, {10, 4, 25}, "out", 0).back(), "--output=out");
}

TEST_F(TrialCommandTest, trials_keep_as_many_checkpoints_as_the_search_keeps) {
  const TrialCommands commands(space_, prints(R"("global-batch": 40)"));
  space_.kept = {3, 1, 4};
  const Lines words = commands.words({}, {10, 4, 25}, "out", 0);
  EXPECT_THAT(Lines(words.end() - 2, words.end()), ElementsAre("--keep-latest=4", "--keep-best=3"));
  EXPECT_EQ(commands.words({"--keep-latest=9", "--keep-best=9"}, {10, 4, 25}, "out", 0).back(), "--output=out");
}

TEST_F(TrialCommandTest, asks_about_the_ends_of_all_ranges) {
  Hyperparameter rate{"lr", 5, Hyperparameter::Kind::logarithmic};
  rate.least = -2;
  Hyperparameter model{"model", 6};
  model.words = {"--model=a", "", "--model=c"};
  space_.hyperparameters = {rate, model};
  const TrialCommands commands(space_, prints(R"("global-batch": 40)"));
  const std::string folder = data().string();
  EXPECT_THAT(asked_, ElementsAre(Lines{"./mine", "--print-recipe", "--data", folder, "--lr=0.01", "--model=a"},
                                  Lines{"./mine", "--print-recipe", "--data", folder, "--lr=1"},
                                  Lines{"./mine", "--print-recipe", "--data", folder, "--lr=1", "--model=c"}));
}

TEST_F(TrialCommandTest, refuses_what_the_program_refuses) {
  space_.hyperparameters = {{"lrr", 5, Hyperparameter::Kind::listed, {"--lrr=1"}}};
  expect_error(Failure::usage, {"line 5", "./mine", "--lrr"}, [&] {
    const TrialCommands commands(space_, refuses(2, "[rank 0, n1]  unknown option '--lrr'. See --help."));
  });
  expect_error(Failure::usage, {"line 2", "--other"},
               [&] { const TrialCommands commands(space_, refuses(2, "unknown option '--other'.")); });
  expect_error(Failure::usage, {"line 1", "./mine", "No such file"}, [&] {
    const TrialCommands commands(space_, refuses(127, "cannot start './mine': No such file or directory."));
  });
  expect_error(Failure::usage, {"line 1", "chmod +x"}, [&] {
    const TrialCommands commands(space_, refuses(126, "cannot start './mine': Permission denied."));
  });
  expect_error(Failure::usage, {"line 1", "--print-recipe", "TypeError: x"},
               [&] { const TrialCommands commands(space_, refuses(1, "TypeError: x")); });
  expect_error(Failure::other, {"./mine", "signal 9"}, [&] { const TrialCommands commands(space_, refuses(137, "")); });
  TrialCommands commands(space_, prints("\"lr\": 1"));
  expect_error(Failure::usage, {"./mine", "--print-recipe"}, [&] { commands.length({}, 1); });
}

// A program with a training loop of its own has no data set and no epochs.
TEST_F(TrialCommandTest, a_custom_loop_counts_steps) {
  space_.arguments.clear();
  space_.metric.name = "x";
  space_.unit = LengthUnit::batches;
  space_.kept.trial_latest = 3;
  TrialCommands commands(space_, prints(R"("metrics": ["y", "x"])"));
  EXPECT_THAT(asked_, ElementsAre(Lines{"./mine", "--print-recipe"}));
  const TrialLength length = commands.length({"--n=1"}, 25);
  EXPECT_EQ(length.steps, 25);
  EXPECT_EQ(length.steps_per_epoch, 1);
  EXPECT_THAT(commands.words({"--n=1"}, length, "out", 2),
              ElementsAre("./mine", "--n=1", "--max-steps=25", "--output=out", "--keep-latest=3"));
}

TEST_F(TrialCommandTest, refuses_what_a_custom_loop_does_not_report) {
  const auto expect_refused = [&](Subjects subjects, const std::string& recipe,
                                  const std::source_location& where = std::source_location::current()) {
    expect_error(
        Failure::usage, subjects, [&] { const TrialCommands commands(space_, prints(recipe)); }, where);
  };
  space_.lines.length = 5;
  expect_refused({"line 3", "./mine", "test-accuracy", "y"}, R"("metrics": ["y"])");
  space_.metric.name = "x";
  expect_refused({"line 3", "./mine", "'x'", "y"}, R"("metrics": ["y"])");
  expect_refused({"line 5", "./mine", "batches"}, R"("metrics": ["x"])");
  expect_refused({"line 3", "./mine", "'x'", "test-loss"}, R"("global-batch": 40)");
  const auto hello = [](const Lines&) { return ProgramOutput{0, {"hello"}}; };
  expect_error(Failure::usage, {"./mine --print-recipe", R"({"metrics": ["x"]})"},
               [&] { const TrialCommands commands(space_, hello); });
}

TEST_F(TrialCommandTest, refuses_a_metric_that_the_data_do_not_give) {
  space_.metric.split = Split::validation;
  expect_error(Failure::usage, {"line 3", "validation-accuracy", data().string()},
               [&] { const TrialCommands commands(space_, prints(R"("global-batch": 40)")); });
  space_.arguments = {"--data", "nowhere"};
  expect_error(Failure::usage, {"nowhere"},
               [&] { const TrialCommands commands(space_, prints(R"("global-batch": 40)")); });
  space_.arguments.clear();
  expect_error(Failure::usage, {"line 2", "--data"},
               [&] { const TrialCommands commands(space_, prints(R"("global-batch": 40)")); });
}

}  // namespace lockstep::trial_command_test
