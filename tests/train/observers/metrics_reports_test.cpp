// What a training reports of its steps and tests, and what becomes of the reports of earlier attempts.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "base/io/file.hpp"
#include "support/messages.hpp"
#include "support/no_room.hpp"
#include "support/temporary_folder.hpp"
#include "train/observers/reported_training.hpp"

namespace lockstep::metrics_reports_test {

Evaluation six_of_eight() {
  Evaluation evaluation;
  evaluation.classes = 2;
  evaluation.samples = 8;
  evaluation.confusion = {{{0, 0}, 3}, {{0, 1}, 1}, {{1, 0}, 1}, {{1, 1}, 3}};
  return evaluation;
}

class MetricsReportsTest : public testing::Test {
 protected:
  FolderLock* lock() { return output_.lock(); }
  std::vector<nlohmann::json> metrics() const { return output_.metrics(); }
  std::set<std::string> names() const {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) names.insert(entry.path().filename());
    return names;
  }

  TemporaryFolder temporary_;
  OutputFolder output_{temporary_.path() / "run"};
  const std::filesystem::path folder_ = output_.path();
  const TrainingLength length_{2, 5};
};

TEST_F(MetricsReportsTest, writes_an_object_every_few_steps_and_at_the_end_of_an_epoch) {
  ReportedTraining training(lock(), length_, 2);
  for (std::int64_t step = 0; step < 5; ++step) {
    training.step(step, {2.0 * static_cast<double>(step), step, 4}, {1.5});
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
  EXPECT_EQ(training.counters().trained_samples(), 20);
}

// Waits were told since the start, so that nobody saw when they grew.
TEST_F(MetricsReportsTest, a_line_tells_what_was_waited_since_the_last_one_and_how_far_the_training_is) {
  ReportedTraining training(lock(), length_, 2);
  for (std::int64_t step = 0; step < 4; ++step) {
    training.step(step, {1, 1, 4}, {static_cast<double>(step * step)});
  }
  const auto objects = metrics();
  ASSERT_EQ(objects.size(), 2U);
  EXPECT_DOUBLE_EQ(objects[0]["loader_waited_ms"], 1);
  EXPECT_DOUBLE_EQ(objects[1]["loader_waited_ms"], 8);
  EXPECT_EQ(objects[1]["steps"], 10);
  EXPECT_EQ(objects[1]["epochs"], 2);
  EXPECT_EQ(objects[1]["samples"], 16);
}

TEST_F(MetricsReportsTest, a_rate_is_of_its_stretch) {
  const TrainingState state = [] {
    TrainingState before;
    before.progress = {.step = 2, .epoch = 0, .samples = 8};
    before.report.training_seconds = before.report.stretch_start = 1000;
    return before;
  }();
  TrainingState slow = state;
  slow.report.stretch_start = 0;  // a stretch of 1000 s so far
  for (const auto& [earlier, is_slow] : {std::pair(state, false), std::pair(slow, true)}) {
    ReportedTraining training(lock(), length_, 1, &earlier);
    training.step(2, {1, 1, 4});
    training.step(3, {1, 1, 4});
    const auto objects = metrics();
    ASSERT_EQ(objects.size(), 2U);
    EXPECT_EQ(objects[0]["samples_per_second"].get<double>() < 0.005, is_slow);
    EXPECT_GT(objects[1]["samples_per_second"], 0.1);
  }
}

// The last minutes of a training were those of its tests, and nobody had counted them.
TEST_F(MetricsReportsTest, the_time_left_counts_the_tests_that_are_to_come) {
  TrainingState state;
  state.progress = {.step = 5, .epoch = 1, .samples = 20, .tested_step = 5};
  state.report.seconds = 1050;  // five steps of ten seconds, and a test of a thousand
  state.report.training_seconds = state.report.stretch_start = 50;
  ReportedTraining training(lock(), length_, 1, &state);
  testing::internal::CaptureStdout();
  training.step(5, {1, 1, 4});
  const std::string said = testing::internal::GetCapturedStdout();
  EXPECT_NE(said.find("epoch 2/2  step 6/10  "), std::string::npos) << said;
  EXPECT_NE(said.find("  17:13 left  learning rate 0.1\n"), std::string::npos) << said;  // 4 x 8.3 s, and 1,000 s
}

TEST_F(MetricsReportsTest, tells_of_a_skipped_step) {
  ReportedTraining training(lock(), length_, 3);
  testing::internal::CaptureStdout();
  training.step(3, {1, 1, 4}, {.skipped_at = 32768});
  const std::string message = testing::internal::GetCapturedStdout();
  EXPECT_NE(message.find("step 4/10"), std::string::npos) << message;
  EXPECT_NE(message.find("32768"), std::string::npos) << message;
  ASSERT_EQ(metrics().size(), 1U);
  EXPECT_EQ(metrics()[0]["kind"], "skipped");
  EXPECT_EQ(metrics()[0]["step"], 4);
  EXPECT_EQ(metrics()[0]["loss_scale"], 32768);
}

TEST_F(MetricsReportsTest, asynchronous_gradients_are_counted_by_age_and_trainer) {
  ReportedTraining training(lock(), length_, 2);
  testing::internal::CaptureStdout();
  training.step(3, {1, 1, 4}, {.staleness = Staleness{{3, 1, 1}, {5, 1}, {0, 1}}});
  training.step(4, {1, 1, 4}, {.staleness = Staleness{{4, 2, 2}, {6, 4}, {0, 2}}});  // the end of an epoch
  const std::string said = testing::internal::GetCapturedStdout();
  EXPECT_NE(said.find("10 gradients in this attempt: 0.8 updates old on average, 4 (rank 1) to 6 (rank 0) per trainer; "
                      "2 too old and dropped (rank 1: 2). To keep more of them, raise --lag-ratio"),
            std::string::npos)
      << said;
  ASSERT_EQ(metrics().size(), 2U);  // each about its own steps
  EXPECT_EQ(metrics()[0]["applied_by_age"], nlohmann::json({3, 1, 1}));
  EXPECT_EQ(metrics()[1]["applied_by_age"], nlohmann::json({1, 1, 1}));
  EXPECT_EQ(metrics()[1]["pushes"], nlohmann::json({1, 3}));
  EXPECT_EQ(metrics()[1]["dropped_pushes"], nlohmann::json({0, 1}));
}

TEST_F(MetricsReportsTest, updates_of_shares_by_speed_are_counted_by_rank) {
  ReportedTraining training(lock(), length_, 2);
  testing::internal::CaptureStdout();
  training.step(3, {1, 1, 4}, {.work = SharedWork{{8, 8}, 6, 4, 1}});
  training.step(4, {1, 1, 4}, {.work = SharedWork{{20, 12}, 12, 7, 2}});  // the end of an epoch
  const std::string said = testing::internal::GetCapturedStdout();
  EXPECT_NE(said.find("32 updates in this attempt, 12 (rank 1) to 20 (rank 0) per rank; 3.5 s per step, of which ranks "
                      "wait 14 % for the last one"),
            std::string::npos)
      << said;
  ASSERT_EQ(metrics().size(), 2U);  // each about its own steps
  EXPECT_EQ(metrics()[0]["updates_by_rank"], nlohmann::json({8, 8}));
  EXPECT_EQ(metrics()[0]["waiting_share"], 0.25);
  EXPECT_EQ(metrics()[1]["updates_by_rank"], nlohmann::json({12, 4}));
  EXPECT_EQ(metrics()[1]["waiting_share"], 0);
}

TEST_F(MetricsReportsTest, the_time_of_tests_does_not_count_as_training) {
  ReportedTraining training(lock(), length_, 2);
  Evaluation evaluation = six_of_eight();
  training.test(5, {{Split::test, evaluation, {}, 1000}});
  EXPECT_LT(training.counters().training_seconds(), 0);
  ASSERT_EQ(metrics().size(), 1U);
  EXPECT_EQ(metrics()[0]["kind"], "test");
  EXPECT_DOUBLE_EQ(metrics()[0]["accuracy"], 0.75);
}

TEST_F(MetricsReportsTest, the_mean_of_weights_stands_beside_them_and_is_what_counts) {
  ReportedTraining training(lock(), length_, 2);
  Evaluation worse = six_of_eight();
  std::swap(worse.confusion[{0, 0}], worse.confusion[{0, 1}]);
  testing::internal::CaptureStdout();
  training.test(5, {{Split::test, worse, six_of_eight()}});
  const std::string message = testing::internal::GetCapturedStdout();
  EXPECT_NE(message.find(fmt::format("test accuracy {:.2f} %", 100 * worse.accuracy())), std::string::npos) << message;
  EXPECT_NE(message.find("75.00 %"), std::string::npos) << message;
  ASSERT_EQ(metrics().size(), 1U);
  EXPECT_DOUBLE_EQ(metrics()[0]["accuracy"], worse.accuracy());
  EXPECT_DOUBLE_EQ(metrics()[0]["ema_accuracy"], 0.75);
  EXPECT_DOUBLE_EQ(metrics()[0]["ema_loss"], six_of_eight().loss());
  EXPECT_LT(worse.accuracy(), 0.75);
  EXPECT_DOUBLE_EQ(training.counters().state().score, 0.75);
  EXPECT_DOUBLE_EQ(training.counters().state().test_accuracy, worse.accuracy());
  EXPECT_DOUBLE_EQ(training.counters().state().mean_test->accuracy, 0.75);
}

TEST_F(MetricsReportsTest, accuracies_with_and_without_test_time_augmentation_stand_side_by_side) {
  ReportedTraining training(lock(), length_, 2);
  training.summarize(*lock());
  EXPECT_EQ(output_.summary()["test_augment"], nullptr);
  Evaluation augmented = six_of_eight();
  augmented.augmentation = TestTimeAugmentation::flip_shift;
  augmented.plain_correct = 5;
  Evaluation ema = augmented;
  ema.plain_correct = 4;
  testing::internal::CaptureStdout();
  training.test(5, {{Split::test, augmented, ema}});
  const std::string message = testing::internal::GetCapturedStdout();
  EXPECT_NE(message.find("test accuracy 75.00 % with flip-shift (62.50 % without)  EMA"), std::string::npos) << message;
  EXPECT_NE(message.find(", accuracy 75.00 % with flip-shift (50.00 % without)"), std::string::npos) << message;
  EXPECT_EQ(metrics()[0]["test_augment"], "flip-shift");
  EXPECT_DOUBLE_EQ(metrics()[0]["plain_accuracy"], 0.625);
  EXPECT_DOUBLE_EQ(metrics()[0]["plain_ema_accuracy"], 0.5);
  const nlohmann::json summary = output_.summary();
  EXPECT_EQ(summary["test_augment"], "flip-shift");
  EXPECT_DOUBLE_EQ(summary["test_accuracy"], 0.75);
  EXPECT_DOUBLE_EQ(summary["plain_test_accuracy"], 0.625);
  EXPECT_DOUBLE_EQ(summary["plain_ema_test_accuracy"], 0.5);
  EXPECT_DOUBLE_EQ(summary["best_accuracy"], 0.75) << "the augmented one judges";
  EXPECT_EQ(training.counters().state().plain_test, (PlainTest{TestTimeAugmentation::flip_shift, 0.625, 0.5}));

  EXPECT_EQ(summary["plain_validation_accuracy"], nullptr) << "there is no such split";
  training.test(7, {{Split::test, augmented, ema}, {Split::validation, augmented, ema}});
  EXPECT_DOUBLE_EQ(output_.summary()["plain_validation_accuracy"], 0.5) << "of the EMA, which judges";

  training.test(10, {{Split::test, six_of_eight()}, {Split::validation, six_of_eight()}});
  EXPECT_EQ(training.counters().state().plain_test, std::nullopt);
  EXPECT_EQ(training.counters().state().plain_validation, std::nullopt);
  EXPECT_FALSE(metrics()[3].contains("test_augment"));
  EXPECT_EQ(output_.summary()["plain_test_accuracy"], nullptr);
}

TEST_F(MetricsReportsTest, the_norm_of_gradients_is_told_where_it_is_known) {
  ReportedTraining training(lock(), length_, 1);
  training.step(0, {1, 1, 4}, {.norm = 2.5});
  training.step(1, {1, 1, 4});
  EXPECT_DOUBLE_EQ(metrics()[0]["gradient_norm"], 2.5);
  EXPECT_FALSE(metrics()[1].contains("gradient_norm"));
}

TEST_F(MetricsReportsTest, the_size_of_images_is_told_where_they_grow) {
  ReportedTraining training(lock(), length_, 1);
  training.step(0, {1, 1, 4});
  training.step(5, {1, 1, 4}, {.image_side = 160});
  ASSERT_EQ(metrics().size(), 2U);
  EXPECT_FALSE(metrics()[0].contains("image_size"));
  EXPECT_EQ(metrics()[1]["image_size"], 160);
}

TEST_F(MetricsReportsTest, lines_that_found_no_room_until_the_end_are_told) {
  ReportedTraining training(lock(), length_, 3);
  for (int i = 0; i < 200; ++i) training.step(3, {1, 1, 4}, {.skipped_at = 32768});
  const std::filesystem::path file = folder_ / "metrics.jsonl";
  const NoRoomBeyond limit(std::filesystem::file_size(file));
  training.step(3, {1, 1, 4}, {.skipped_at = 16384});
  expect_error(Failure::other, {file.string()}, [&] { training.stream().finish(); });
}

TEST_F(MetricsReportsTest, without_a_folder_nothing_is_written) {
  ReportedTraining training(nullptr, length_, 1);
  training.step(1, {1, 1, 4});
  training.stream().finish();
}

TEST_F(MetricsReportsTest, the_files_of_an_earlier_run_are_set_aside) {
  std::filesystem::create_directories(folder_ / "set-aside-1");
  std::ofstream(folder_ / "summary.json") << "{}";
  std::ofstream(folder_ / "metrics.jsonl") << "{}\n";
  std::ofstream(folder_ / "model.h5") << "weights";
  std::ofstream(folder_ / "notes.txt") << "mine";
  std::ofstream(folder_ / ".model.h5.00000000004711ab.lockstep-partial") << "cut off by a kill";
  testing::internal::CaptureStderr();
  const ReportedTraining training(lock(), length_, 1);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("'" + (folder_ / "set-aside-2").string() + "'"),
            std::string::npos);
  EXPECT_TRUE(metrics().empty());
  EXPECT_EQ(names(), (std::set<std::string>{"lock", "metrics.jsonl", "notes.txt", "set-aside-1", "set-aside-2"}));
  EXPECT_EQ(read_file(folder_ / "set-aside-2" / "model.h5", 100), "weights");
  EXPECT_EQ(read_file(folder_ / "set-aside-2" / "metrics.jsonl", 100), "{}\n");
}

TEST_F(MetricsReportsTest, going_on_cuts_the_metrics_back_to_the_checkpoint) {
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
  ReportedTraining(lock(), length_, 2, &state);
  ASSERT_EQ(metrics().size(), 4U);
  EXPECT_EQ(metrics()[2]["kind"], "test");
  EXPECT_EQ(metrics()[3]["kind"], "validation");

  state.progress.tested_step = 0;  // the tests are still to come
  ReportedTraining(lock(), length_, 2, &state);
  ASSERT_EQ(metrics().size(), 2U);
  EXPECT_EQ(metrics()[1]["step"], 5);
  EXPECT_EQ(names(), (std::set<std::string>{"lock", "metrics.jsonl"})) << "what is made again needs no second copy";
}

TEST_F(MetricsReportsTest, a_finished_training_that_goes_on_keeps_its_results_aside) {
  std::filesystem::create_directories(folder_);
  std::ofstream(folder_ / "summary.json") << "{}";
  std::ofstream(folder_ / "model.h5") << "weights";
  std::ofstream(folder_ / "metrics.jsonl") << R"({"kind":"training","epoch":1,"step":5})" << '\n';
  TrainingState state;
  state.progress = {.step = 5, .epoch = 1, .samples = 20, .tested_step = 5};
  ReportedTraining(lock(), length_, 2, &state);
  EXPECT_EQ(names(), (std::set<std::string>{"lock", "metrics.jsonl", "set-aside-1"}));
  EXPECT_EQ(read_file(folder_ / "set-aside-1" / "model.h5", 100), "weights");
  EXPECT_EQ(metrics().size(), 1U);
}

// Each promotion in a search left a copy.
TEST_F(MetricsReportsTest, a_training_that_ended_at_max_steps_and_goes_on_keeps_its_results_in_place) {
  for (const int epochs : {2, 3}) {
    std::filesystem::create_directories(folder_);
    std::ofstream(folder_ / "summary.json") << R"({"state": "done", "recipe": {"epochs": 2, "max-steps": 5}})";
    std::ofstream(folder_ / "model.h5") << "weights";
    TrainingState state;
    state.progress = {.step = 5, .epoch = 1, .samples = 20, .tested_step = 5};
    ReportedTraining(lock(), length_, 2, &state, LaterOutput::repeated, nullptr, epochs);
    EXPECT_EQ(std::filesystem::exists(folder_ / "set-aside-1"), epochs == 3);
    EXPECT_EQ(std::filesystem::exists(folder_ / "model.h5"), epochs == 2);
  }
}

TEST_F(MetricsReportsTest, a_training_without_a_step_left_keeps_its_results_until_they_are_written_anew) {
  std::filesystem::create_directories(folder_);
  std::ofstream(folder_ / "model.h5") << "weights";
  TrainingState state;
  state.progress = {.step = 10, .epoch = 2, .samples = 40, .tested_step = 10};
  ReportedTraining(lock(), length_, 2, &state);
  EXPECT_EQ(names(), (std::set<std::string>{"lock", "metrics.jsonl", "model.h5"}));
}

TEST_F(MetricsReportsTest, a_training_that_takes_another_course_keeps_the_metrics_of_the_first) {
  std::filesystem::create_directories(folder_);
  const std::string lines = R"({"kind":"training","epoch":1,"step":5})"
                            "\n"
                            R"({"kind":"training","epoch":2,"step":7})"
                            "\n";
  std::ofstream(folder_ / "metrics.jsonl") << lines;
  TrainingState state;
  state.progress = {.step = 5, .epoch = 1, .samples = 20, .tested_step = 5};
  ReportedTraining(lock(), length_, 2, &state, LaterOutput::set_aside);
  EXPECT_EQ(metrics().size(), 1U);
  EXPECT_EQ(read_file(folder_ / "set-aside-1" / "metrics.jsonl", 100), lines);
}

TEST_F(MetricsReportsTest, going_on_within_a_stretch_gives_the_same_means) {
  const auto step = [](ReportedTraining& training, std::int64_t index) {
    training.step(index, {1.0 / static_cast<double>(index + 3), index, 4});
  };
  ReportedTraining whole(lock(), length_, 5);
  for (std::int64_t index = 0; index < 5; ++index) step(whole, index);
  const nlohmann::json expected = metrics().back();

  TrainingState state;
  {
    ReportedTraining first(lock(), length_, 5);
    for (std::int64_t index = 0; index < 3; ++index) step(first, index);
    state.report = first.counters().state();
    state.progress = {.step = 3, .epoch = 0, .samples = 12, .tested_step = 0};
  }
  ReportedTraining second(lock(), length_, 5, &state);
  for (std::int64_t index = 3; index < 5; ++index) step(second, index);
  ASSERT_EQ(metrics().size(), 1U);
  EXPECT_EQ(metrics()[0]["loss"], expected["loss"]);
  EXPECT_EQ(metrics()[0]["accuracy"], expected["accuracy"]);
  EXPECT_EQ(second.counters().trained_samples(), 20);
  EXPECT_GE(second.counters().state().seconds, state.report.seconds);
}

TEST_F(MetricsReportsTest, a_validation_is_told_beside_the_test_and_decides_what_is_best) {
  ReportedTraining training(lock(), length_, 2);
  Evaluation half = six_of_eight();
  half.confusion = {{{0, 0}, 4}, {{1, 0}, 4}};
  training.test(5, {{Split::test, six_of_eight()}, {Split::validation, half}});
  EXPECT_DOUBLE_EQ(training.counters().state().score, 0.5);
  EXPECT_DOUBLE_EQ(training.counters().state().test_accuracy, 0.75);
  ASSERT_EQ(metrics().size(), 2U);
  EXPECT_EQ(metrics()[1]["kind"], "validation");
}

}  // namespace lockstep::metrics_reports_test
