// What a training leaves in its output folder, whoever else starts there, and whatever becomes of the folder.
#include <fcntl.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "base/io/file.hpp"
#include "support/program.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::output_folder_test {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using Words = std::vector<std::string>;
using Files = std::map<std::string, std::string>;

constexpr std::size_t file_limit = 1 << 24;

class OutputFolderTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryFolder;
    const ProgramResult made =
        run_program({built_program("make_shards"), "synthetic", "--samples", "600", "--output", data()});
    ASSERT_EQ(made.exit_code, 0) << made.errors;
    ASSERT_EQ(run_program(training(finished())).exit_code, 0);
  }
  static void TearDownTestSuite() { delete folder_; }
  static fs::path data() { return folder_->path() / "data"; }
  static fs::path finished() { return folder_->path() / "finished"; }
  // Of this test.
  static fs::path folder() { return folder_->path() / testing::UnitTest::GetInstance()->current_test_info()->name(); }
  static fs::path output() { return folder() / "run"; }
  static fs::path verdict() { return folder() / "verdict.json"; }

  // Twenty steps, unless `more` says otherwise.
  static Words training(const fs::path& output, const Words& more = {}) {
    Words words = {
        built_program("train_cifar"), "--data", data(), "--output", output, "--threads", "1", "--report-every", "5"};
    const auto add = [&](const std::string& option, const std::string& value) {
      if (std::ranges::find(more, option) == more.end()) words.insert(words.end(), {option, value});
    };
    add("--model", "lenet");
    add("--epochs", "2");
    add("--global-batch", "60");
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  static ProgramResult start(const Words& words) {
    return run_program(words, {{"LOCKSTEP_VERDICT", verdict().string()}});
  }
  static nlohmann::json json(const fs::path& file) { return nlohmann::json::parse(read_file(file, file_limit)); }
  static std::string weights(const fs::path& output) { return json(output / "summary.json")["weights_hash"]; }

  // Every file of a folder with its bytes, but locks and the lock holder's report.
  static Files files_of(const fs::path& folder) {
    Files files;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
      const std::string name = entry.path().filename();
      if (!entry.is_regular_file() || name == "lock" || name == "failure.json") continue;
      files[entry.path().lexically_relative(folder)] = read_file(entry.path(), file_limit);
    }
    return files;
  }

  // A training without end, or of `more`, to which `fault` is done once it is at work.
  static ProgramResult disturb(const Words& words, const std::function<void()>& fault) {
    std::jthread hand([&](const std::stop_token& stop) {
      const auto is_at_work = [&] {
        std::error_code none;
        return fs::file_size(output() / "metrics.jsonl", none) > 0 && !none;
      };
      while (!is_at_work() && !stop.stop_requested()) std::this_thread::sleep_for(std::chrono::milliseconds(10));
      if (!stop.stop_requested()) fault();
    });
    ProgramResult result = start(words);
    EXPECT_FALSE(result.timed_out);
    return result;
  }
  static void send(const std::string& signal) {
    EXPECT_EQ(run_program({"pkill", "-" + signal, "--newest", "-f", output().string() + " "}).exit_code, 0);
  }
  static Words endless() { return training(output(), {"--epochs", "1000000"}); }

  void SetUp() override { fs::create_directories(folder()); }

  static TemporaryFolder* folder_;
};

TemporaryFolder* OutputFolderTest::folder_ = nullptr;

// TensorBoard showed the second training alone.
TEST_F(OutputFolderTest, two_trainings_have_no_common_folder_of_events) {
  const fs::path events = folder() / "events";
  const auto train = [&](const char* name, const Words& more) {
    Words words = {"--tensorboard", events, "--epochs", "1"};
    words.insert(words.end(), more.begin(), more.end());
    return start(training(folder() / name, words));
  };
  EXPECT_EQ(train("one", {}).exit_code, 0);
  const Files before = files_of(events);
  const ProgramResult other = train("other", {});
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.errors, HasSubstr("'" + events.string() + "'"));
  EXPECT_THAT(other.errors, HasSubstr("--tensorboard"));
  EXPECT_EQ(files_of(events), before);
  EXPECT_FALSE(fs::exists(folder() / "other" / "summary.json"));
  EXPECT_EQ(train("one", {"--resume", "never"}).exit_code, 0) << "begun anew";
  fs::rename(folder() / "one", folder() / "moved");
  EXPECT_EQ(start(training(folder() / "moved", {"--tensorboard", events, "--epochs", "2"})).exit_code, 0)
      << "continued";
}

// A training that continued was not asked: TensorBoard joined its curves to those of the other.
TEST_F(OutputFolderTest, a_training_that_continues_has_no_common_folder_of_events_either) {
  const fs::path events = folder() / "events";
  EXPECT_EQ(start(training(folder() / "one", {"--tensorboard", events, "--epochs", "1"})).exit_code, 0);
  const Files before = files_of(events);
  EXPECT_EQ(start(training(folder() / "other", {"--epochs", "1"})).exit_code, 0);
  const ProgramResult other = start(training(folder() / "other", {"--tensorboard", events, "--epochs", "2"}));
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.errors, HasSubstr("'" + events.string() + "'"));
  EXPECT_EQ(files_of(events), before);
}

// Nine of nineteen starts that failed had removed the model of the run before.
TEST_F(OutputFolderTest, a_start_that_fails_changes_nothing_of_an_earlier_run) {
  fs::copy(finished(), output(), fs::copy_options::recursive);
  const Files before = files_of(output());
  ASSERT_TRUE(before.contains("model.h5"));
  ASSERT_TRUE(before.contains("checkpoints/step-000000000020.h5"));
  const std::vector<Words> failing = {
      {"--resume", "never", "--model", "lenett"},
      {"--resume", "never", "--data", "nowhere"},
      {"--resume", "never", "--init-from", "nowhere.h5"},
      {"--resume", "never", "--init-from", (data() / "train" / "manifest.json").string()},
      {"--resume", "never", "--init-from", (output() / "model.h5").string(), "--model", "convnet"},
      {"--resume", "never", "--global-batch", "1000000"},
      {"--resume", "never", "--virtual-ranks", "7"},
      {"--resume", "never", "--reduce", "nccl"},
      {"--resume", "never", "--wire", "bf16"},
      {"--resume", "never", "--warmup", "100"},
      {"--resume", "never", "--precision", "fp16"},
      {"--resume", "nowhere.h5"},
      {"--wire", "bf16"},
      {"--epochs", "9", "--reduce", "nccl"},
      {"--epochs", "9", "--momentum", "0.5"},
      {"--epochs", "1"},
      {"--device", "cuda"},
      {"--epochs", "many"},
      {"--checkpoints", "/proc/nowhere"},
  };
  for (const int ranks : {1, 2}) {
    for (const Words& options : failing) {
      // Those that each rank finds by itself; without a GPU two say so of "nccl", and either may be first.
      if (ranks == 2 && (options.size() != 4 || options.back() == "nccl")) continue;
      fs::remove(verdict());
      const Words words = training(output(), options);
      const ProgramResult result = start(ranks == 1 ? words : under_mpirun(ranks, words));
      const std::string what = fmt::format("{} on {} ranks: {}", fmt::join(options, " "), ranks, result.errors);
      EXPECT_GT(result.exit_code, 0) << what;
      EXPECT_EQ(files_of(output()), before) << what;
      ASSERT_TRUE(fs::exists(verdict())) << what;
      EXPECT_EQ(json(verdict())["code"], result.exit_code) << what;
      EXPECT_THAT(result.errors, HasSubstr(json(verdict())["sentence"].get<std::string>()));
    }
  }
}

// A note, tags and the command line of the training were lost to an attempt that did nothing, and its end to a later
// time.
TEST_F(OutputFolderTest, a_finished_training_that_is_started_again_changes_no_byte_of_the_folder) {
  fs::copy(finished(), output(), fs::copy_options::recursive);
  const Files before = files_of(output());
  for (const int ranks : {1, 2}) {
    for (const Words& options : {Words{}, Words{"--note", "again", "--tag", "try=2", "--keep-latest", "1"}}) {
      const Words words = training(output(), options);
      const ProgramResult result = start(ranks == 1 ? words : under_mpirun(ranks, words));
      ASSERT_EQ(result.exit_code, 0) << result.errors;
      EXPECT_THAT(result.output, HasSubstr("20 of 20 steps, 2 epochs"));
      EXPECT_THAT(result.output, ContainsRegex("test accuracy [0-9.]+ %, weights " + weights(finished())));
      EXPECT_EQ(files_of(output()), before);
      EXPECT_FALSE(fs::exists(output() / "lock"));
      EXPECT_FALSE(fs::exists(output() / "failure.json"));
    }
  }
  fs::remove(output() / "model.h5");
  EXPECT_EQ(start(training(output())).exit_code, 0);
  EXPECT_EQ(read_file(output() / "model.h5", file_limit), before.at("model.h5")) << "what is missing is written";
}

// The weights that a new run was told to begin with were removed before they were read.
TEST_F(OutputFolderTest, a_new_run_may_begin_with_the_model_that_it_sets_aside) {
  fs::copy(finished(), output(), fs::copy_options::recursive);
  const Files before = files_of(output());
  const ProgramResult result =
      start(training(output(), {"--resume", "never", "--init-from", (output() / "model.h5").string()}));
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  for (const char* name : {"model.h5", "metrics.jsonl", "summary.json"}) {
    EXPECT_EQ(read_file(output() / "set-aside-1" / name, file_limit), before.at(name)) << name;
    EXPECT_NE(read_file(output() / name, file_limit), before.at(name)) << name;
  }
  EXPECT_FALSE(fs::exists(verdict())) << "an attempt that ends with 0 leaves no verdict";
}

TEST_F(OutputFolderTest, a_folder_of_the_data_is_refused) {
  const Words plain = training(output());
  const std::string data = *(std::ranges::find(plain, "--data") + 1);
  const Files before = files_of(data);
  for (const char* part : {"", "/train", "/test"}) {
    for (const std::string option : {"--output", "--checkpoints"}) {
      Words words = plain;
      if (option == "--output") *(std::ranges::find(words, option) + 1) = data + part;
      if (option == "--checkpoints") words.insert(words.end(), {option, data + part});
      const ProgramResult refused = start(words);
      EXPECT_EQ(refused.exit_code, 2);
      EXPECT_THAT(refused.errors, HasSubstr(option + " '" + data + part + "' is a folder of the training data"));
      EXPECT_EQ(files_of(data), before);
      EXPECT_FALSE(fs::exists(output()));
    }
  }
}

// They were looked for when the folder was made and the data were open, or copied (--stage).
TEST_F(OutputFolderTest, initial_weights_that_are_not_there_are_refused_first) {
  const Words options = {"--init-from", "nowhere.h5"};
  Words words = training(output(), options);
  *(std::ranges::find(words, "--data") + 1) = "no-data";
  for (const Words& command : {words, under_mpirun(2, words)}) {
    const ProgramResult refused = start(command);
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_THAT(refused.errors, HasSubstr("'nowhere.h5'"));
    EXPECT_FALSE(fs::exists(output()));
  }
  fs::copy(finished(), output(), fs::copy_options::recursive);
  EXPECT_EQ(start(training(output(), options)).exit_code, 0) << "a training that goes on does not read them";
}

TEST_F(OutputFolderTest, a_verdict_of_an_earlier_attempt_is_replaced_and_other_files_are_not) {
  std::ofstream(verdict()) << R"({"code": 2, "sentence": "an earlier attempt"})";
  EXPECT_EQ(start(training(output())).exit_code, 0);
  EXPECT_FALSE(fs::exists(verdict()));
  std::ofstream(verdict()) << "my thesis";
  const ProgramResult refused = start(training(output()));
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.errors, AllOf(HasSubstr("'" + verdict().string() + "'"), HasSubstr("LOCKSTEP_VERDICT")));
  EXPECT_EQ(read_file(verdict(), file_limit), "my thesis");
}

// An unset variable in a job script made a training that nobody could find again.
TEST_F(OutputFolderTest, an_output_folder_without_a_name_is_refused_and_none_at_all_is_told) {
  const ProgramResult unnamed = start(training(""));
  EXPECT_EQ(unnamed.exit_code, 2);
  EXPECT_THAT(unnamed.errors, HasSubstr("--output: '' "));
  const ProgramResult none = start({built_program("train_cifar"), "--data", data(), "--model", "lenet", "--epochs", "1",
                                    "--threads", "1", "--global-batch", "60"});
  EXPECT_EQ(none.exit_code, 0) << none.errors;
  EXPECT_THAT(none.errors, HasSubstr("--output FOLDER"));
}

// A job script waited for a verdict that nobody could write, and nobody said so.
TEST_F(OutputFolderTest, a_verdict_that_cannot_be_written_is_told_at_the_start) {
  const ProgramResult result = run_program(training(output()), {{"LOCKSTEP_VERDICT", "/proc/nowhere/verdict.json"}});
  EXPECT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_THAT(result.errors, AllOf(HasSubstr("'/proc/nowhere/verdict.json'"), HasSubstr("LOCKSTEP_VERDICT")));
}

// A second training was refused, but had removed the first one's report by then, and left one of its own.
TEST_F(OutputFolderTest, a_bystander_is_refused_and_leaves_no_trace_in_a_running_training) {
  const fs::path others = folder() / "others.json";
  const ProgramResult first = disturb(under_mpirun(2, endless()), [&] {
    const Words alike = training(output());
    const Words with_checkpoints_elsewhere = training(output(), {"--checkpoints", (folder() / "elsewhere").string()});
    for (const Words& words : {alike, under_mpirun(2, with_checkpoints_elsewhere)}) {
      const ProgramResult second = run_program(words, {{"LOCKSTEP_VERDICT", others.string()}});
      EXPECT_EQ(second.exit_code, 2) << second.errors;
      EXPECT_THAT(second.errors, HasSubstr("'" + output().string() + "'"));
      EXPECT_THAT(second.errors, HasSubstr("--output"));
      EXPECT_EQ(json(others)["code"], 2);
      EXPECT_FALSE(fs::exists(output() / "failure.json"));
      EXPECT_FALSE(fs::exists(folder() / "elsewhere"));
    }
    send("KILL");
  });
  EXPECT_NE(first.exit_code, 0);
  for (const fs::path& report : {verdict(), output() / "failure.json"}) {
    EXPECT_THAT(json(report)["sentence"].get<std::string>(), ContainsRegex("rank [01] on .* was killed")) << report;
  }
}

TEST_F(OutputFolderTest, checkpoints_of_a_running_training_are_its_own_whatever_the_output) {
  disturb(endless(), [&] {
    const ProgramResult second =
        run_program(training(folder() / "b", {"--checkpoints", (output() / "checkpoints").string()}));
    EXPECT_EQ(second.exit_code, 2);
    EXPECT_THAT(second.errors, HasSubstr("--checkpoints"));
    EXPECT_THAT(json(folder() / "b" / "failure.json")["sentence"].get<std::string>(), HasSubstr("--checkpoints"))
        << "this folder is the second one's";
    send("KILL");
  });
}

TEST_F(OutputFolderTest, checkpoints_may_lie_in_the_output_folder_itself) {
  const ProgramResult result = start(training(output(), {"--checkpoints", output().string()}));
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_TRUE(fs::exists(output() / "step-000000000020.h5"));
  EXPECT_FALSE(fs::exists(output() / "lock"));
}

// What was trained after somebody had removed the folder was lost, the model included.
TEST_F(OutputFolderTest, a_folder_that_is_removed_during_the_training_is_made_again) {
  const Words words = training(output(), {"--epochs", "60", "--checkpoint-every", "50"});
  ASSERT_EQ(run_program(training(folder() / "undisturbed", {"--epochs", "60"})).exit_code, 0);
  const ProgramResult result = disturb(words, [&] { fs::remove_all(output()); });
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_THAT(result.errors, HasSubstr("'" + output().string() + "'"));
  EXPECT_EQ(weights(output()), weights(folder() / "undisturbed"));
  EXPECT_TRUE(fs::exists(output() / "model.h5"));
  EXPECT_TRUE(fs::exists(output() / "checkpoints" / "step-000000000600.h5"));
  const auto lines = [](const fs::path& output) {
    const std::string text = read_file(output / "metrics.jsonl", file_limit);
    return std::ranges::count(text, '\n');
  };
  EXPECT_EQ(lines(output()), lines(folder() / "undisturbed")) << "the lines of the removed file are saved";
}

TEST_F(OutputFolderTest, a_folder_that_is_removed_and_taken_by_another_training_is_lost) {
  const fs::path others = output().parent_path() / "others";
  fs::create_directories(others);
  std::ofstream(others / "lock")
      << R"({"host":"elsewhere","job":"17","name_space":0,"process":4711,"restarts":0,"start":"","token":"x"})"
      << "\n00000000000000000000\n";
  const ProgramResult result = disturb(endless(), [&] {
    // Both folders change places at once: in between the training would find a folder without a lock, or make its own
    // again.
    ASSERT_EQ(renameat2(AT_FDCWD, output().c_str(), AT_FDCWD, others.c_str(), RENAME_EXCHANGE), 0) << strerror(errno);
  });
  EXPECT_EQ(result.exit_code, 76) << result.errors;
  EXPECT_THAT(json(verdict())["sentence"].get<std::string>(), HasSubstr("job 17 on elsewhere"));
}

// SIGXFSZ ended the program without a word.
TEST_F(OutputFolderTest, a_limit_on_the_size_of_files_is_told) {
  Words words = {"sh", "-c", "ulimit -f 16; exec \"$@\"", "sh"};
  const Words program = training(output());
  words.insert(words.end(), program.begin(), program.end());
  const ProgramResult result = start(words);
  EXPECT_EQ(result.exit_code, 2) << result.errors;
  EXPECT_THAT(result.errors, HasSubstr("step 0 "));
  EXPECT_THAT(json(verdict())["sentence"].get<std::string>(), HasSubstr("ulimit -f"));
}

}  // namespace lockstep::output_folder_test
