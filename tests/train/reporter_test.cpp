#include "train/reporter.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/io/file.hpp"
#include "support/messages.hpp"
#include "support/no_room.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep {
namespace {

Evaluation six_of_eight() {
  Evaluation evaluation;
  evaluation.classes = 2;
  evaluation.samples = 8;
  evaluation.confusion = {3, 1, 1, 3};
  return evaluation;
}

class ReporterTest : public testing::Test {
 protected:
  FolderLock* lock() {
    if (!lock_) lock_.emplace(folder_, "--output");
    return &*lock_;
  }

  std::vector<nlohmann::json> metrics() const {
    std::vector<nlohmann::json> objects;
    std::ifstream file(folder_ / "metrics.jsonl");
    for (std::string line; std::getline(file, line);) objects.push_back(nlohmann::json::parse(line));
    return objects;
  }
  std::set<std::string> names() const {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) names.insert(entry.path().filename());
    return names;
  }

  TemporaryFolder temporary_;
  const std::filesystem::path folder_ = temporary_.path() / "run";
  const TrainingLength length_{2, 5};

 private:
  std::optional<FolderLock> lock_;
};

TEST_F(ReporterTest, writes_an_object_every_few_steps_and_at_the_end_of_an_epoch) {
  Reporter reporter(0, lock(), length_, 2);
  reporter.start();
  for (std::int64_t step = 0; step < 5; ++step) {
    reporter.step({0, step}, {2.0 * static_cast<double>(step), step, 4}, 0.1, 1.5);
  }
  const auto objects = metrics();
  ASSERT_EQ(objects.size(), 3U);
  EXPECT_EQ(objects[0]["step"], 2);
  EXPECT_EQ(objects[0]["epoch"], 1);
  EXPECT_EQ(objects[0]["kind"], "training");
  EXPECT_DOUBLE_EQ(objects[0]["loss"], 0.25);       // steps 0 and 1: (0 + 2) / 8
  EXPECT_DOUBLE_EQ(objects[1]["accuracy"], 0.625);  // steps 2 and 3: (2 + 3) / 8
  EXPECT_EQ(objects[2]["step"], 5);
  EXPECT_GT(objects[2]["samples_per_second"], 0);
  EXPECT_EQ(reporter.trained_samples(), 20);
}

// Waits were told since the start, so that nobody saw when they grew.
TEST_F(ReporterTest, a_line_tells_what_was_waited_since_the_last_one_and_how_far_the_training_is) {
  Reporter reporter(0, lock(), length_, 2);
  reporter.start();
  for (std::int64_t step = 0; step < 4; ++step) {
    reporter.step({0, step}, {1, 1, 4}, 0.1, static_cast<double>(step * step));
  }
  const auto objects = metrics();
  ASSERT_EQ(objects.size(), 2U);
  EXPECT_DOUBLE_EQ(objects[0]["loader_waited_ms"], 1);
  EXPECT_DOUBLE_EQ(objects[1]["loader_waited_ms"], 8);
  EXPECT_EQ(objects[1]["steps"], 10);
  EXPECT_EQ(objects[1]["epochs"], 2);
  EXPECT_EQ(objects[1]["samples"], 16);
}

TEST_F(ReporterTest, a_rate_is_of_its_stretch) {
  const TrainingState state = [] {
    TrainingState before;
    before.progress = {.step = 2, .epoch = 0, .samples = 8};
    before.report.training_seconds = before.report.stretch_start = 1000;
    return before;
  }();
  TrainingState slow = state;
  slow.report.stretch_start = 0;  // a stretch of 1000 s so far
  for (const auto& [earlier, is_slow] : {std::pair(state, false), std::pair(slow, true)}) {
    Reporter reporter(0, lock(), length_, 1, &earlier);
    reporter.start();
    reporter.step({0, 2}, {1, 1, 4}, 0.1, 0);
    reporter.step({0, 3}, {1, 1, 4}, 0.1, 0);
    const auto objects = metrics();
    ASSERT_EQ(objects.size(), 2U);
    EXPECT_EQ(objects[0]["samples_per_second"].get<double>() < 0.005, is_slow);
    EXPECT_GT(objects[1]["samples_per_second"], 0.1);
  }
}

// The last minutes of a training were those of its tests, and nobody had counted them.
TEST_F(ReporterTest, the_time_left_counts_the_tests_that_are_to_come) {
  TrainingState state;
  state.progress = {.step = 5, .epoch = 1, .samples = 20, .tested_step = 5};
  state.report.seconds = 1050;  // five steps of ten seconds, and a test of a thousand
  state.report.training_seconds = state.report.stretch_start = 50;
  Reporter reporter(0, lock(), length_, 1, &state);
  reporter.start();
  testing::internal::CaptureStdout();
  reporter.step({1, 5}, {1, 1, 4}, 0.1, 0);
  const std::string said = testing::internal::GetCapturedStdout();
  EXPECT_NE(said.find("epoch 2/2  step 6/10  "), std::string::npos) << said;
  EXPECT_NE(said.find("  17:13 left  learning rate 0.1\n"), std::string::npos) << said;  // 4 x 8.3 s, and 1,000 s
}

TEST_F(ReporterTest, tells_of_a_skipped_step) {
  Reporter reporter(0, lock(), length_, 2);
  reporter.start();
  testing::internal::CaptureStdout();
  reporter.skipped({0, 3}, 32768);
  const std::string message = testing::internal::GetCapturedStdout();
  EXPECT_NE(message.find("step 4/10"), std::string::npos) << message;
  EXPECT_NE(message.find("32768"), std::string::npos) << message;
  ASSERT_EQ(metrics().size(), 1U);
  EXPECT_EQ(metrics()[0]["kind"], "skipped");
  EXPECT_EQ(metrics()[0]["step"], 4);
  EXPECT_EQ(metrics()[0]["loss_scale"], 32768);
}

TEST_F(ReporterTest, the_time_of_tests_does_not_count_as_training) {
  Reporter reporter(0, lock(), length_, 2);
  reporter.start();
  Evaluation evaluation = six_of_eight();
  reporter.test({0, 4}, evaluation, 1000.0);
  EXPECT_LT(reporter.training_seconds(), 0);
  ASSERT_EQ(metrics().size(), 1U);
  EXPECT_EQ(metrics()[0]["kind"], "test");
  EXPECT_DOUBLE_EQ(metrics()[0]["accuracy"], 0.75);
}

TEST_F(ReporterTest, the_mean_of_weights_stands_beside_them_and_is_what_counts) {
  Reporter reporter(0, lock(), length_, 2);
  reporter.start();
  Evaluation worse = six_of_eight();
  std::swap(worse.confusion[0], worse.confusion[1]);
  testing::internal::CaptureStdout();
  reporter.test({0, 4}, worse, 1, six_of_eight());
  const std::string message = testing::internal::GetCapturedStdout();
  EXPECT_NE(message.find(fmt::format("test accuracy {:.2f} %", 100 * worse.accuracy())), std::string::npos) << message;
  EXPECT_NE(message.find("75.00 %"), std::string::npos) << message;
  ASSERT_EQ(metrics().size(), 1U);
  EXPECT_DOUBLE_EQ(metrics()[0]["accuracy"], worse.accuracy());
  EXPECT_DOUBLE_EQ(metrics()[0]["ema_accuracy"], 0.75);
  EXPECT_DOUBLE_EQ(metrics()[0]["ema_loss"], six_of_eight().loss());
  EXPECT_LT(worse.accuracy(), 0.75);
  EXPECT_DOUBLE_EQ(reporter.state().score, 0.75);
  EXPECT_DOUBLE_EQ(reporter.state().test_accuracy, worse.accuracy());
  EXPECT_DOUBLE_EQ(reporter.state().mean_test->accuracy, 0.75);
}

TEST_F(ReporterTest, the_norm_of_gradients_is_told_where_it_is_known) {
  Reporter reporter(0, lock(), length_, 1);
  reporter.start();
  reporter.step({0, 0}, {1, 1, 4}, 0.1, 0, 2.5);
  reporter.step({0, 1}, {1, 1, 4}, 0.1, 0);
  EXPECT_DOUBLE_EQ(metrics()[0]["gradient_norm"], 2.5);
  EXPECT_FALSE(metrics()[1].contains("gradient_norm"));
}

TEST_F(ReporterTest, says_from_where_on_images_are_larger) {
  Reporter reporter(0, lock(), length_, 1);
  reporter.start();
  reporter.step({0, 0}, {1, 1, 4}, 0.1, 0);
  testing::internal::CaptureStdout();
  reporter.begin_size({1, 5}, 160);
  EXPECT_NE(testing::internal::GetCapturedStdout().find("160 x 160 pixels"), std::string::npos);
  reporter.step({1, 5}, {1, 1, 4}, 0.1, 0);
  ASSERT_EQ(metrics().size(), 2U);
  EXPECT_FALSE(metrics()[0].contains("image_size"));
  EXPECT_EQ(metrics()[1]["image_size"], 160);
}

TEST_F(ReporterTest, lines_that_found_no_room_until_the_end_are_told) {
  Reporter reporter(0, lock(), length_, 2);
  reporter.start();
  for (int i = 0; i < 200; ++i) reporter.skipped({0, 3}, 32768);
  const std::filesystem::path file = folder_ / "metrics.jsonl";
  const NoRoomBeyond limit(std::filesystem::file_size(file));
  reporter.skipped({0, 4}, 16384);
  expect_error(Failure::other, {file.string()}, [&] { reporter.finish(); });
}

TEST_F(ReporterTest, only_rank_0_writes) {
  Reporter reporter(1, nullptr, length_, 2);
  reporter.start();
  reporter.step({0, 1}, {1, 1, 4}, 0.1, 0);
  reporter.write_summary(RunState::done, {{"steps", 10}});
  reporter.finish();
  EXPECT_FALSE(std::filesystem::exists(folder_));
}

TEST_F(ReporterTest, without_a_folder_nothing_is_written) {
  Reporter reporter(0, nullptr, length_, 1);
  reporter.step({0, 1}, {1, 1, 4}, 0.1, 0);
  reporter.write_summary(RunState::done, {{"steps", 10}});
  reporter.finish();
}

// A start that failed later, for a wrong model say, had removed the results of the run before.
TEST_F(ReporterTest, changes_nothing_before_it_starts) {
  std::filesystem::create_directories(folder_);
  std::ofstream(folder_ / "model.h5") << "weights";
  const TrainingState earlier;
  { const Reporter anew(0, lock(), length_, 1); }
  { const Reporter going_on(0, lock(), length_, 1, &earlier); }
  EXPECT_EQ(names(), (std::set<std::string>{"lock", "model.h5"}));
}

TEST_F(ReporterTest, the_files_of_an_earlier_run_are_set_aside) {
  std::filesystem::create_directories(folder_ / "set-aside-1");
  std::ofstream(folder_ / "summary.json") << "{}";
  std::ofstream(folder_ / "metrics.jsonl") << "{}\n";
  std::ofstream(folder_ / "model.h5") << "weights";
  std::ofstream(folder_ / "notes.txt") << "mine";
  std::ofstream(folder_ / ".model.h5.00000000004711ab.lockstep-partial") << "cut off by a kill";
  Reporter reporter(0, lock(), length_, 1);
  testing::internal::CaptureStderr();
  reporter.start();
  EXPECT_NE(testing::internal::GetCapturedStderr().find("'" + (folder_ / "set-aside-2").string() + "'"),
            std::string::npos);
  EXPECT_TRUE(metrics().empty());
  EXPECT_EQ(names(), (std::set<std::string>{"lock", "metrics.jsonl", "notes.txt", "set-aside-1", "set-aside-2"}));
  EXPECT_EQ(read_file(folder_ / "set-aside-2" / "model.h5", 100), "weights");
  EXPECT_EQ(read_file(folder_ / "set-aside-2" / "metrics.jsonl", 100), "{}\n");
}

TEST_F(ReporterTest, going_on_cuts_the_metrics_back_to_the_checkpoint) {
  std::filesystem::create_directories(folder_);
  std::ofstream(folder_ / "metrics.jsonl") << R"({"kind":"training","epoch":1,"step":4})" << '\n'
                                           << R"({"kind":"training","epoch":1,"step":5})" << '\n'
                                           << R"({"kind":"test","epoch":1,"step":5})" << '\n'
                                           << R"({"kind":"validation","epoch":1,"step":5})" << '\n'
                                           << "rubbish\n"
                                           << R"({"kind":"training","epoch":1,"step":6})" << '\n'
                                           << R"({"kind":"training","st)";
  TrainingState state;
  state.progress = {.step = 5, .epoch = 1, .samples = 20, .tested_step = 5};
  Reporter(0, lock(), length_, 2, &state).start();
  ASSERT_EQ(metrics().size(), 4U);
  EXPECT_EQ(metrics()[2]["kind"], "test");
  EXPECT_EQ(metrics()[3]["kind"], "validation");

  state.progress.tested_step = 0;  // the tests are still to come
  Reporter(0, lock(), length_, 2, &state).start();
  ASSERT_EQ(metrics().size(), 2U);
  EXPECT_EQ(metrics()[1]["step"], 5);
  EXPECT_EQ(names(), (std::set<std::string>{"lock", "metrics.jsonl"})) << "what is made again needs no second copy";
}

TEST_F(ReporterTest, a_finished_training_that_goes_on_keeps_its_results_aside) {
  std::filesystem::create_directories(folder_);
  std::ofstream(folder_ / "summary.json") << "{}";
  std::ofstream(folder_ / "model.h5") << "weights";
  std::ofstream(folder_ / "metrics.jsonl") << R"({"kind":"training","epoch":1,"step":5})" << '\n';
  TrainingState state;
  state.progress = {.step = 5, .epoch = 1, .samples = 20, .tested_step = 5};
  Reporter(0, lock(), length_, 2, &state).start();
  EXPECT_EQ(names(), (std::set<std::string>{"lock", "metrics.jsonl", "set-aside-1"}));
  EXPECT_EQ(read_file(folder_ / "set-aside-1" / "model.h5", 100), "weights");
  EXPECT_EQ(metrics().size(), 1U);
}

TEST_F(ReporterTest, a_training_without_a_step_left_keeps_its_results_until_they_are_written_anew) {
  std::filesystem::create_directories(folder_);
  std::ofstream(folder_ / "model.h5") << "weights";
  TrainingState state;
  state.progress = {.step = 10, .epoch = 2, .samples = 40, .tested_step = 10};
  Reporter(0, lock(), length_, 2, &state).start();
  EXPECT_EQ(names(), (std::set<std::string>{"lock", "metrics.jsonl", "model.h5"}));
}

TEST_F(ReporterTest, a_training_that_takes_another_course_keeps_the_metrics_of_the_first) {
  std::filesystem::create_directories(folder_);
  const std::string lines = R"({"kind":"training","epoch":1,"step":5})"
                            "\n"
                            R"({"kind":"training","epoch":2,"step":7})"
                            "\n";
  std::ofstream(folder_ / "metrics.jsonl") << lines;
  TrainingState state;
  state.progress = {.step = 5, .epoch = 1, .samples = 20, .tested_step = 5};
  Reporter(0, lock(), length_, 2, &state).start(LaterOutput::set_aside);
  EXPECT_EQ(metrics().size(), 1U);
  EXPECT_EQ(read_file(folder_ / "set-aside-1" / "metrics.jsonl", 100), lines);
}

TEST_F(ReporterTest, going_on_within_a_stretch_gives_the_same_means) {
  const auto step = [](Reporter& reporter, std::int64_t index) {
    reporter.step({0, index}, {1.0 / static_cast<double>(index + 3), index, 4}, 0.1, 0);
  };
  Reporter whole(0, lock(), length_, 5);
  whole.start();
  for (std::int64_t index = 0; index < 5; ++index) step(whole, index);
  const nlohmann::json expected = metrics().back();

  TrainingState state;
  {
    Reporter first(0, lock(), length_, 5);
    first.start();
    for (std::int64_t index = 0; index < 3; ++index) step(first, index);
    state.report = first.state();
    state.progress = {.step = 3, .epoch = 0, .samples = 12, .tested_step = 0};
  }
  Reporter second(0, lock(), length_, 5, &state);
  second.start();
  for (std::int64_t index = 3; index < 5; ++index) step(second, index);
  ASSERT_EQ(metrics().size(), 1U);
  EXPECT_EQ(metrics()[0]["loss"], expected["loss"]);
  EXPECT_EQ(metrics()[0]["accuracy"], expected["accuracy"]);
  EXPECT_EQ(second.trained_samples(), 20);
  EXPECT_GE(second.state().seconds, state.report.seconds);
}

TEST_F(ReporterTest, the_slowest_rank_is_an_object_of_its_own) {
  Reporter reporter(0, lock(), length_, 2);
  reporter.start();
  Straggler rank;
  rank.rank = 3;
  rank.cost = 0.25;
  rank.times = {"n2", 10, 80, 0};
  rank.middle_arrival_ms = 60;
  reporter.slowest({1, 6}, rank);
  ASSERT_EQ(metrics().size(), 1U);
  nlohmann::json said = metrics()[0];
  said.erase("seconds");
  EXPECT_EQ(said, (nlohmann::json{{"kind", "slowest rank"},
                                  {"epoch", 2},
                                  {"step", 7},
                                  {"rank", 3},
                                  {"host", "n2"},
                                  {"cost", 0.25},
                                  {"data_ms", 10.0},
                                  {"compute_ms", 80.0},
                                  {"arrival_ms", 90.0},
                                  {"middle_arrival_ms", 60.0}}));
}

TEST_F(ReporterTest, a_validation_is_told_beside_the_test_and_decides_what_is_best) {
  Reporter reporter(0, lock(), length_, 2);
  reporter.start();
  Evaluation evaluation = six_of_eight();
  reporter.test({0, 4}, evaluation, 1.0);
  EXPECT_DOUBLE_EQ(reporter.state().score, 0.75);
  evaluation.confusion = {4, 0, 4, 0};
  reporter.validation({0, 4}, evaluation, 1.0);
  EXPECT_DOUBLE_EQ(reporter.state().score, 0.5);
  EXPECT_DOUBLE_EQ(reporter.state().test_accuracy, 0.75);
  ASSERT_EQ(metrics().size(), 2U);
  EXPECT_EQ(metrics()[1]["kind"], "validation");
}

}  // namespace
}  // namespace lockstep
