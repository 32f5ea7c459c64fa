// Trainings that are stopped, go on, begin anew or may not: what they say, return and leave behind.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "base/io/file.hpp"
#include "support/program.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::checkpoint_run_test {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class CheckpointRunTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryFolder;
    const ProgramResult made =
        run_program({built_program("make_shards"), "synthetic", "--samples", "600", "--output", data().string()});
    ASSERT_EQ(made.exit_code, 0) << made.errors;
  }
  static void TearDownTestSuite() { delete folder_; }
  static fs::path data() { return folder_->path() / "data"; }
  // Of this test.
  static fs::path output() { return folder_->path() / testing::UnitTest::GetInstance()->current_test_info()->name(); }

  // Three epochs of ten steps, unless `more` says otherwise.
  static std::vector<std::string> training(const fs::path& output, const std::vector<std::string>& more = {}) {
    std::vector<std::string> words = {built_program("train_cifar"), "--data", data(), "--output", output};
    const auto add = [&](const std::string& option, const std::string& value, const std::string& replaced_by) {
      if (std::ranges::find(more, replaced_by) == more.end()) words.insert(words.end(), {option, value});
    };
    add("--model", "lenet", "--model");
    add("--epochs", "3", "--epochs");
    add("--global-batch", "60", "--batch-per-rank");
    add("--threads", "1", "--threads");
    add("--report-every", "5", "--report-every");
    add("--plan-folder", folder_->path() / "plans", "--plan-folder");
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  static ProgramResult train(const fs::path& output, const std::vector<std::string>& more = {}) {
    return run_program(training(output, more));
  }
  // Folders with these names are made once the training has begun.
  static ProgramResult train_with_folders_in_the_way(const std::vector<std::string>& names) {
    std::string command;
    for (const std::string& word : training(output())) command += "'" + word + "' ";
    command += "& p=$!; until [ -e '" + (output() / "metrics.jsonl").string() + "' ]; do sleep 0.01; done; mkdir";
    for (const std::string& name : names) command += " '" + name + "'";
    return run_program({"bash", "-c", command + "; wait $p"});
  }
  static nlohmann::json json(const fs::path& file) { return nlohmann::json::parse(read_file(file, 1 << 20)); }
  static std::string weights(const fs::path& output) { return json(output / "summary.json")["weights_hash"]; }
  static fs::path checkpoint(const fs::path& output, int step) {
    return output / "checkpoints" / fmt::format("step-{:012}.h5", step);
  }
  static void damage(const fs::path& file) {
    std::string bytes = read_file(file, 1 << 24);
    bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
    write_file_atomically(file, bytes);
  }
  // Weights of the training that nobody disturbed. It leaves a checkpoint every 5 steps; but while one is being written
  // the next has to wait, so on a busy machine that may take more than one attempt.
  static std::string undisturbed() {
    static const std::string hash = [] {
      const fs::path folder = folder_->path() / "undisturbed";
      const auto left_all = [&] {
        return std::ranges::all_of(std::array{5, 10, 15, 20, 25, 30},
                                   [&](int step) { return fs::exists(checkpoint(folder, step)); });
      };
      for (int attempt = 0; attempt < 20 && !left_all(); ++attempt) {
        fs::remove_all(folder);
        EXPECT_EQ(train(folder, {"--keep-latest", "9", "--checkpoint-every", "5"}).exit_code, 0);
      }
      EXPECT_TRUE(left_all());
      return weights(folder);
    }();
    return hash;
  }
  // A copy of what the undisturbed training left, as if it had been killed after `step`.
  static void leave_killed_after(int step) {
    undisturbed();
    fs::copy(folder_->path() / "undisturbed", output(), fs::copy_options::recursive);
    for (int later = step + 1; later <= 30; ++later) fs::remove(checkpoint(output(), later));
    fs::remove(output() / "summary.json");
  }

  static TemporaryFolder* folder_;
};

TemporaryFolder* CheckpointRunTest::folder_ = nullptr;

TEST_F(CheckpointRunTest, the_same_command_goes_on_from_the_newest_checkpoint) {
  leave_killed_after(15);
  const ProgramResult result = train(output());
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_THAT(result.output, HasSubstr("resuming from '" + checkpoint(output(), 15).string() + "'"));
  EXPECT_THAT(result.output, Not(HasSubstr("step 15/30")));
  EXPECT_EQ(weights(output()), undisturbed());
}

// The default batch was divided among the trainers, kept, and compared with the whole.
TEST_F(CheckpointRunTest, asynchronous_trainers_may_become_fewer_and_keep_their_place) {
  const auto train_async = [](int ranks, const std::vector<std::string>& more) {
    std::vector<std::string> words = {"--sync", "ps-async", "--local-steps", "2"};
    words.insert(words.end(), more.begin(), more.end());
    return run_program(under_mpirun(ranks, training(output(), words)));
  };
  ASSERT_EQ(train_async(3, {"--max-steps", "4"}).exit_code, 0);  // of 5 in an epoch: 120 samples each
  EXPECT_EQ(json(output() / "summary.json")["global_batch"], 60);
  const ProgramResult fewer = train_async(2, {});
  ASSERT_EQ(fewer.exit_code, 0) << fewer.output << fewer.errors;
  EXPECT_THAT(fewer.output, AllOf(HasSubstr("resuming from '" + checkpoint(output(), 4).string() + "'"),
                                  HasSubstr("step 15/15"), HasSubstr("60 per update, 60 in total (1 trainer)")));
  std::ifstream metrics(output() / "metrics.jsonl");
  nlohmann::json last;
  for (std::string line; std::getline(metrics, line);) {
    const nlohmann::json object = nlohmann::json::parse(line);
    if (object["kind"] == "training") last = object;
  }
  EXPECT_EQ(last["samples"], 3 * 600);
  EXPECT_EQ(train_async(2, {}).exit_code, 0);
}

TEST_F(CheckpointRunTest, a_finished_training_stays_as_it_is_and_can_be_given_more_epochs) {
  leave_killed_after(30);
  ASSERT_EQ(train(output()).exit_code, 0);
  EXPECT_EQ(weights(output()), undisturbed());
  EXPECT_EQ(json(output() / "summary.json")["test_accuracy"],
            json(folder_->path() / "undisturbed" / "summary.json")["test_accuracy"]);
  EXPECT_THAT(train(output()).output, HasSubstr("30 of 30 steps, 3 epochs"));
  const ProgramResult more = train(output(), {"--epochs", "4"});
  EXPECT_EQ(more.exit_code, 0) << more.errors;
  EXPECT_THAT(more.output, AllOf(Not(HasSubstr("30 of 30 steps")), HasSubstr("step 40 instead of 30; the learning")));
  EXPECT_EQ(json(output() / "summary.json")["steps"], 40);
  const ProgramResult fewer = train(output());
  EXPECT_EQ(fewer.exit_code, 2);
  EXPECT_THAT(fewer.errors, AllOf(HasSubstr("step 40"), HasSubstr("--epochs 3"), HasSubstr("step 30")));
}

// Twice in the middle of an epoch: at the end of the first attempt, and of the training.
TEST_F(CheckpointRunTest, a_training_may_end_after_so_many_steps_and_be_given_more_of_them) {
  const auto steps = [](const fs::path& output, const std::string& count, const std::vector<std::string>& more = {}) {
    std::vector<std::string> words = {built_program("train_cifar"),
                                      "--data",
                                      data(),
                                      "--output",
                                      output,
                                      "--model",
                                      "lenet",
                                      "--global-batch",
                                      "60",
                                      "--threads",
                                      "1",
                                      "--max-steps",
                                      count,
                                      "--plan-folder",
                                      folder_->path() / "plans"};
    words.insert(words.end(), more.begin(), more.end());
    return run_program(words);
  };
  const ProgramResult result = steps(output(), "25");
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_THAT(result.output, HasSubstr("epoch 3/3  step 25/25  loss "));
  EXPECT_THAT(result.output, HasSubstr("epoch 3/3  test loss "));
  EXPECT_TRUE(fs::exists(output() / "model.h5"));
  EXPECT_TRUE(fs::exists(checkpoint(output(), 25)));
  const nlohmann::json summary = json(output() / "summary.json");
  EXPECT_EQ(summary["state"], "done");
  EXPECT_EQ(summary["step"], 25);
  EXPECT_EQ(summary["steps"], 25);
  EXPECT_EQ(summary["best_step"].get<int>() > 0, true);
  std::ifstream metrics(output() / "metrics.jsonl");
  double last_rate = 1;
  int tests = 0;
  for (std::string line; std::getline(metrics, line);) {
    const nlohmann::json object = nlohmann::json::parse(line);
    tests += object["kind"] == "test" ? 1 : 0;
    last_rate = object.value("learning_rate", last_rate);
  }
  EXPECT_EQ(tests, 3) << "after steps 10, 20 and 25";
  EXPECT_LT(last_rate, 1e-5) << "the schedule ends with the last step";
  EXPECT_THAT(steps(output(), "25").output, AllOf(HasSubstr("25 of 25 steps, 3 epochs"), HasSubstr("--max-steps 25")));
  const ProgramResult fewer = steps(output(), "20");
  EXPECT_EQ(fewer.exit_code, 2);
  EXPECT_THAT(fewer.errors, AllOf(HasSubstr("step 25"), HasSubstr("--max-steps is 20")));
  ASSERT_EQ(steps(output(), "32").exit_code, 0);
  EXPECT_EQ(json(output() / "summary.json")["steps"], 32);
  EXPECT_EQ(json(output() / "summary.json")["epochs"], 4);
}

// With --epochs the schedule is theirs: these are the first steps of a longer training.
TEST_F(CheckpointRunTest, with_epochs_too_the_rate_keeps_its_course) {
  undisturbed();
  ASSERT_EQ(train(output(), {"--max-steps", "25", "--checkpoint-every", "25"}).exit_code, 0);
  EXPECT_EQ(json(output() / "summary.json")["steps"], 25);
  ASSERT_EQ(train(output(), {"--max-steps", "1000"}).exit_code, 0);
  EXPECT_EQ(json(output() / "summary.json")["steps"], 30);
  EXPECT_EQ(weights(output()), undisturbed());
}

TEST_F(CheckpointRunTest, another_recipe_is_refused_by_the_field_and_nothing_changes) {
  leave_killed_after(15);
  const std::string metrics = read_file(output() / "metrics.jsonl", 1 << 20);
  const ProgramResult result = train(output(), {"--seed", "7"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.errors, AllOf(HasSubstr("--seed 0"), HasSubstr(" 7"),
                                   HasSubstr("--init-from '" + output().string() + "'"), HasSubstr("--resume never")));
  EXPECT_EQ(read_file(output() / "metrics.jsonl", 1 << 20), metrics);
  EXPECT_TRUE(fs::exists(checkpoint(output(), 15)));
}

TEST_F(CheckpointRunTest, a_damaged_checkpoint_is_named_and_the_one_before_gives_the_same_weights) {
  leave_killed_after(15);
  damage(checkpoint(output(), 15));
  const ProgramResult result = train(output());
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_THAT(result.errors, HasSubstr("'" + checkpoint(output(), 15).string() + "'"));
  EXPECT_THAT(result.output, HasSubstr("resuming from '" + checkpoint(output(), 10).string() + "'"));
  EXPECT_EQ(weights(output()), undisturbed());
}

TEST_F(CheckpointRunTest, if_all_checkpoints_are_damaged_it_ends_with_65) {
  leave_killed_after(10);
  for (const int step : {0, 5, 10}) damage(checkpoint(output(), step));
  const ProgramResult result = train(output());
  EXPECT_EQ(result.exit_code, 65);
  EXPECT_THAT(result.errors, HasSubstr("'" + (output() / "checkpoints").string() + "'"));
  for (const int step : {0, 5, 10}) EXPECT_TRUE(fs::exists(checkpoint(output(), step)));
}

// The final weights and their summary were not kept.
TEST_F(CheckpointRunTest, a_file_may_be_named_and_what_is_later_is_set_aside) {
  undisturbed();
  fs::copy(folder_->path() / "undisturbed", output(), fs::copy_options::recursive);
  const ProgramResult result = train(output(), {"--resume", checkpoint(output(), 20)});
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_THAT(result.errors, HasSubstr("set-aside-1"));
  EXPECT_TRUE(fs::exists(output() / "checkpoints" / "set-aside-1" / checkpoint(output(), 30).filename()));
  EXPECT_EQ(weights(output()), undisturbed());
  for (const char* name : {"metrics.jsonl", "model.h5", "model-best.h5", "summary.json"}) {
    const auto in = [name](const fs::path& folder) { return read_file(folder / name, 1 << 24); };
    EXPECT_EQ(in(output() / "set-aside-1"), in(folder_->path() / "undisturbed")) << name;
  }
}

// Its lines of metrics.jsonl were continued, and its best test would have been this training's.
TEST_F(CheckpointRunTest, resumed_from_another_folder_it_takes_over_no_results_of_its_own) {
  undisturbed();
  ASSERT_EQ(train(output(), {"--seed", "7"}).exit_code, 0);
  const std::string before = read_file(output() / "metrics.jsonl", 1 << 20);
  const ProgramResult result = train(output(), {"--resume", checkpoint(folder_->path() / "undisturbed", 15)});
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_EQ(weights(output()), undisturbed());
  EXPECT_EQ(read_file(output() / "set-aside-1" / "metrics.jsonl", 1 << 20), before);
  for (const char* name : {"model.h5", "summary.json"})
    EXPECT_TRUE(fs::exists(output() / "set-aside-1" / name)) << name;
  std::istringstream lines(read_file(output() / "metrics.jsonl", 1 << 20));
  for (std::string line; std::getline(lines, line);) EXPECT_GT(nlohmann::json::parse(line)["step"], 15) << line;
}

// They were continued or taken for its own: its best model was another training's.
TEST_F(CheckpointRunTest, resumed_in_the_output_folder_of_another_training_it_takes_over_none_of_its_results) {
  undisturbed();
  constexpr std::array results{"metrics.jsonl", "model.h5", "model-best.h5", "summary.json"};
  for (const int last : {15, 30}) {
    fs::remove_all(output());
    ASSERT_EQ(train(output(), {"--seed", "7"}).exit_code, 0);
    std::map<std::string, std::string> before;
    for (const char* name : results) before[name] = read_file(output() / name, 1 << 24);
    const fs::path own = fmt::format("{}-{}", output().string(), last);
    fs::copy(folder_->path() / "undisturbed" / "checkpoints", own);
    for (int later = last + 1; later <= 30; ++later) fs::remove(own / checkpoint("", later).filename());
    for (int attempt = 1; attempt <= 2; ++attempt) {
      const ProgramResult result = train(output(), {"--checkpoints", own});
      ASSERT_EQ(result.exit_code, 0) << result.errors;
      EXPECT_EQ(weights(output()), undisturbed());
      EXPECT_FALSE(fs::exists(output() / "set-aside-2")) << "its own results are set aside after step " << last;
    }
    for (const char* name : results) EXPECT_EQ(read_file(output() / "set-aside-1" / name, 1 << 24), before[name]);
    EXPECT_EQ(json(output() / "summary.json")["interruptions"], nlohmann::json::array());
  }
}

TEST_F(CheckpointRunTest, begun_anew_it_loses_nothing_of_the_earlier_training) {
  leave_killed_after(15);
  const ProgramResult result = train(output(), {"--resume", "never", "--seed", "7"});
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_THAT(result.output, Not(HasSubstr("resuming from")));
  EXPECT_TRUE(fs::exists(output() / "checkpoints" / "set-aside-1" / checkpoint(output(), 15).filename()));
  EXPECT_NE(weights(output()), undisturbed());
}

TEST_F(CheckpointRunTest, on_another_number_of_ranks_the_global_batch_stays_and_the_bits_do_not) {
  const std::vector<std::string> each =
      training(output(), {"--batch-per-rank", "30", "--checkpoint-every", "5", "--keep-latest", "9"});
  ASSERT_EQ(run_program(under_mpirun(2, each)).exit_code, 0);
  for (const int step : {20, 25, 30}) fs::remove(checkpoint(output(), step));
  const ProgramResult result = run_program(each);
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_THAT(result.errors, AllOf(HasSubstr("1 rank instead of 2 ranks"), HasSubstr("--virtual-ranks")));
  EXPECT_EQ(json(output() / "summary.json")["global_batch"], 60);
}

TEST_F(CheckpointRunTest, with_other_vectors_it_goes_on_and_says_that_the_bits_differ) {
  leave_killed_after(15);
  const ProgramResult result = train(output(), {"--instruction-set", "baseline"});
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_THAT(result.errors, HasSubstr("cpu: SSE2, f32 instead of cpu: "));
  EXPECT_THAT(json(output() / "summary.json")["device"].get<std::string>(), HasSubstr(", SSE2, "));
}

TEST_F(CheckpointRunTest, done_already_it_does_not_go_on_whatever_the_vectors) {
  ASSERT_EQ(train(output()).exit_code, 0);
  const ProgramResult result = train(output(), {"--instruction-set", "baseline"});
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_THAT(result.output, HasSubstr("30 of 30 steps"));
  EXPECT_THAT(result.errors, Not(HasSubstr("instead of")));
}

TEST_F(CheckpointRunTest, other_convolutions_are_another_recipe) {
  leave_killed_after(15);
  const ProgramResult result = train(output(), {"--convolutions", "direct"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.errors, AllOf(HasSubstr("--convolutions \"auto\""), HasSubstr("\"direct\"")));
}

TEST_F(CheckpointRunTest, out_of_time_it_stops_with_75_and_the_same_command_gives_the_same_weights) {
  const ProgramResult stopped = train(output(), {"--time-limit", "1s"});
  EXPECT_EQ(stopped.exit_code, 75) << stopped.errors;
  EXPECT_EQ(json(output() / "failure.json")["code"], 75);
  EXPECT_THAT(json(output() / "failure.json")["sentence"].get<std::string>(),
              AllOf(HasSubstr("step 1 of 30"), HasSubstr("--time-limit")));
  ASSERT_EQ(train(output()).exit_code, 0);
  EXPECT_EQ(weights(output()), undisturbed());
  EXPECT_FALSE(fs::exists(output() / "failure.json"));
}

TEST_F(CheckpointRunTest, before_slurms_time_runs_out_it_stops_with_75) {
  const std::map<std::string, std::string> job = {{"SLURM_JOB_ID", "17"},
                                                  {"SLURM_JOB_END_TIME", std::to_string(std::time(nullptr) + 1)}};
  EXPECT_EQ(run_program(training(output()), job).exit_code, 75);
  EXPECT_THAT(json(output() / "failure.json")["sentence"].get<std::string>(),
              AllOf(HasSubstr(" of 30"), HasSubstr("Slurm")));
}

TEST_F(CheckpointRunTest, a_signal_to_one_of_several_ranks_stops_all_of_them_with_one_checkpoint) {
  std::vector<std::string> words = under_mpirun(3, training(output(), {"--epochs", "100000"}));
  std::string command;
  for (const std::string& word : words) command += "'" + word + "' ";
  const std::string wait =
      "until grep -qs step '" + (output() / "metrics.jsonl").string() + "'; do kill -0 $p || exit; sleep 0.05; done; ";
  const ProgramResult result = run_program(
      {"bash", "-c", command + "& p=$!; " + wait + "kill -USR1 $(ps -o pid= --ppid $p | tail -1); wait $p"});
  EXPECT_EQ(result.exit_code, 75) << result.errors;
  EXPECT_EQ(json(output() / "failure.json")["code"], 75);
  const int steps = json(output() / "failure.json")["step"].get<int>() + 1;
  EXPECT_TRUE(fs::exists(checkpoint(output(), steps)));
}

TEST_F(CheckpointRunTest, where_no_checkpoint_can_be_written_training_goes_on_and_ends_with_1) {
  const std::string in_the_way = checkpoint(output(), 30).string();
  const ProgramResult result = train_with_folders_in_the_way({in_the_way});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.errors, AllOf(HasSubstr("step 30"), HasSubstr("'" + in_the_way + "'")));
  const std::string sentence = json(output() / "failure.json")["sentence"];
  EXPECT_THAT(sentence, HasSubstr("'" + in_the_way + "'"));
  EXPECT_THAT(result.errors, HasSubstr(sentence));
  EXPECT_EQ(weights(output()), undisturbed());
}

// The sentence named only the model.
TEST_F(CheckpointRunTest, where_neither_checkpoint_nor_model_can_be_written_one_sentence_names_both) {
  const std::string model = (output() / "model.h5").string();
  const std::string last = checkpoint(output(), 30).string();
  EXPECT_EQ(train_with_folders_in_the_way({last, model}).exit_code, 2) << "as for the model alone";
  const std::string sentence = json(output() / "failure.json")["sentence"];
  EXPECT_THAT(sentence, AllOf(HasSubstr("complete"), HasSubstr("'" + last + "'"), HasSubstr("'" + model + "'")));
  EXPECT_EQ(json(output() / "summary.json")["state"], "failed");
  EXPECT_EQ(weights(output()), undisturbed());
}

TEST_F(CheckpointRunTest, weights_of_another_training_are_a_beginning_and_no_more) {
  undisturbed();
  const fs::path from = folder_->path() / "undisturbed" / "model.h5";
  const ProgramResult result = train(output(), {"--init-from", from, "--lr", "0.001", "--epochs", "1"});
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_THAT(result.output, HasSubstr("'" + from.string() + "'"));
  EXPECT_THAT(result.output, HasSubstr("step 10/10"));
  EXPECT_NE(weights(output()), undisturbed());
  const ProgramResult other = train(output().string() + "2", {"--init-from", from, "--model", "resnet20"});
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.errors,
              AllOf(HasSubstr("'" + from.string() + "'"), HasSubstr("'resnet20'"), HasSubstr("--model lenet")));
}

TEST_F(CheckpointRunTest, the_best_is_chosen_by_validation_where_there_is_such_a_split) {
  EXPECT_THAT(train(output().string() + "1", {"--epochs", "1"}).output, HasSubstr("the best 1 by test accuracy"));
  const fs::path split = folder_->path() / "split";
  fs::create_directories(split);
  for (const char* name : {"train", "test"}) fs::create_directory_symlink(data() / name, split / name);
  fs::create_directory_symlink(data() / "test", split / "validation");
  std::vector<std::string> words = training(output(), {"--epochs", "1"});
  *(std::ranges::find(words, "--data") + 1) = split;
  const ProgramResult result = run_program(words);
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_THAT(result.output, HasSubstr("the best 1 by validation accuracy"));
  EXPECT_THAT(result.output, HasSubstr("epoch 1/1  validation loss "));
  const nlohmann::json summary = json(output() / "summary.json");
  EXPECT_EQ(summary["validation_accuracy"], summary["test_accuracy"]) << "the splits are one here";
  EXPECT_EQ(summary["best_split"], "validation");
  EXPECT_EQ(json(output().string() + "1/summary.json")["best_split"], "test");
  const std::string percent = fmt::format("{:.2f} %", 100 * summary["test_accuracy"].get<double>());
  EXPECT_THAT(result.output, HasSubstr("  test accuracy " + percent + ", validation accuracy " + percent + "  ("));
}

TEST_F(CheckpointRunTest, norms_over_virtual_ranks_go_on_only_on_as_many_ranks) {
  const auto shares_norms = [&](int ranks, const std::string& group) {
    return run_program(under_mpirun(ranks, training(output(), {"--model", "convnet", "--epochs", "1", "--virtual-ranks",
                                                               "2", "--sync-batch-norm", group})));
  };
  const ProgramResult together = shares_norms(2, "0");
  ASSERT_EQ(together.exit_code, 0) << together.errors;
  EXPECT_THAT(together.output, HasSubstr("batch norm: statistics over 2 ranks"));
  const ProgramResult alone = shares_norms(1, "0");
  EXPECT_EQ(alone.exit_code, 2);
  EXPECT_THAT(alone.errors, HasSubstr("--sync-batch-norm"));
  const ProgramResult apart = shares_norms(2, "1");
  EXPECT_EQ(apart.exit_code, 2);
  EXPECT_THAT(apart.errors, HasSubstr("--sync-batch-norm 0"));
}

}  // namespace lockstep::checkpoint_run_test
