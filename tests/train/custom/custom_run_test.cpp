#include "train/custom/custom_run.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <csignal>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "base/io/file.hpp"
#include "base/log.hpp"
#include "comm/agreed_error.hpp"
#include "files/tensor_file.hpp"
#include "run/checkpoint_files.hpp"
#include "run/summary.hpp"
#include "runtime/failure/failure_report.hpp"
#include "support/messages.hpp"
#include "support/no_room.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::custom_run_test {

namespace fs = std::filesystem;
using testing::HasSubstr;

class CustomRunTest : public testing::Test {
 protected:
  CustomRunTest() {
    log::set_identity(world_.rank(), "n1");
    failure_report::set_rank(world_.rank(), "n1");
    options_.output = fs::path(world_.broadcast(folder_.path().string(), 0)) / "run";
    options_.max_steps = 10;
    options_.of_program = {{"increment-by", "1"}};
  }
  ~CustomRunTest() override { world_.barrier(); }

  bool is_first() const { return world_.rank() == 0; }
  // A run up to a checkpoint of the last of `steps`. Its folder is free afterwards.
  void run_up_to(std::initializer_list<std::int64_t> steps) {
    {
      CustomRun run(session_, options_);
      run.begin();
      for (const std::int64_t step : steps) {
        if (is_first()) run.report_training_metrics(step, {{"x", step}});
        run.save_checkpoint(step, {{"x", {static_cast<float>(step)}}}, {{"steps_completed", step}});
      }
    }
    release();
  }
  void release() {
    world_.barrier();
    failure_report::set_folder({});
    world_.barrier();
  }
  // Collective. `act` throws AgreedError on all ranks. Rank 0's message counts.
  template <typename Act>
  void expect_agreed(Failure failure, Subjects subjects, Act act,
                     const std::source_location& where = std::source_location::current()) {
    expect_error(failure, subjects, act, where);
    release();
  }
  fs::path checkpoint(std::int64_t step) const { return options_.output / "checkpoints" / checkpoint_name(step); }
  std::vector<nlohmann::json> lines() const {
    std::vector<nlohmann::json> lines;
    std::ifstream file(options_.output / "metrics.jsonl");
    for (std::string line; std::getline(file, line);) lines.push_back(nlohmann::json::parse(line));
    return lines;
  }

  TemporaryFolder folder_;
  Communicator world_{MPI_COMM_WORLD};
  Session session_{world_, nullptr};
  CustomRunOptions options_;
};

TEST_F(CustomRunTest, reports_of_rank_0_are_lines_of_metrics) {
  {
    CustomRun run(session_, options_);
    run.begin();
    EXPECT_EQ(run.steps_completed(), 0);
    EXPECT_TRUE(run.restored().arrays.empty());
    if (is_first()) {
      run.report_training_metrics(3, {{"x", -2.5}, {"rate", std::nan("")}});
      run.report_validation_metrics(10, {{"x", 7}});
      const std::vector<nlohmann::json> found = lines();
      ASSERT_EQ(found.size(), 2U);
      EXPECT_EQ(found[0]["kind"], "training");
      EXPECT_EQ(found[0]["step"], 3);
      EXPECT_EQ(found[0]["steps"], 10);
      EXPECT_EQ(found[0]["x"], -2.5);
      EXPECT_EQ(found[0]["rate"], nullptr) << "as a loss that is not finite";
      EXPECT_EQ(found[1]["kind"], "validation");
    }
    EXPECT_EQ(run.conclude().code, 0);
    const Summary summary = read_summary(options_.output).value();
    EXPECT_EQ(summary.state, RunState::done);
    EXPECT_EQ(summary.step, 10);
    EXPECT_EQ(summary.fields["validation_metrics"]["x"], 7);
  }
  release();
}

TEST_F(CustomRunTest, a_result_is_replaced_by_its_own_run_and_set_aside_by_another) {
  const auto write = [&](std::string_view text) {
    {
      CustomRun run(session_, options_);
      run.begin();
      if (is_first()) run.write_result("model", std::as_bytes(std::span(text)));
      run.save_checkpoint(1, {}, nlohmann::json::object());
    }
    release();
  };
  const auto content = [&](const fs::path& file) { return read_file(options_.output / file, 100); };
  write("one");
  write("two");
  if (is_first()) {
    EXPECT_EQ(content("model"), "two");
    EXPECT_FALSE(fs::exists(options_.output / "set-aside-1/model")) << "the second run resumed the first";
    EXPECT_EQ(read_summary(options_.output)->fields["results"], nlohmann::json({"model"}));
  }
  options_.resume = "never";
  write("three");
  if (!is_first()) return;
  EXPECT_EQ(content("model"), "three");
  const bool is_first_folder = fs::exists(options_.output / "set-aside-1/model");
  EXPECT_EQ(content(is_first_folder ? "set-aside-1/model" : "set-aside-2/model"), "two");
}

// What a later step had written was replaced when the run went back to an earlier one.
TEST_F(CustomRunTest, results_are_kept_when_a_run_goes_back) {
  const auto write = [&](std::string_view text) {
    {
      CustomRun run(session_, options_);
      run.begin();
      for (const std::int64_t step : {2, 4}) run.save_checkpoint(step, {}, nlohmann::json::object());
      if (is_first()) run.write_result("model", std::as_bytes(std::span(text)));
    }
    release();
  };
  write("once");
  options_.resume = checkpoint(2).string();
  write("again");
  if (!is_first()) return;
  EXPECT_EQ(read_file(options_.output / "model", 100), "again");
  EXPECT_EQ(read_file(options_.output / "set-aside-1/model", 100), "once");
}

TEST_F(CustomRunTest, opening_a_run_changes_no_earlier_results) {
  run_up_to({2, 4});
  const auto contents = [&] {
    std::map<fs::path, std::string> of_files;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(options_.output)) {
      const bool is_result = entry.is_regular_file() && entry.path().filename() != "lock";
      if (is_result) of_files[entry.path()] = read_file(entry.path(), 1 << 20);
    }
    return of_files;
  };
  const std::map<fs::path, std::string> before = contents();
  ASSERT_EQ(before.size(), 4U) << "two checkpoints, metrics and summary";
  for (const fs::path& resume : {fs::path("auto"), fs::path("never"), checkpoint(2)}) {
    options_.resume = resume.string();
    {
      const CustomRun run(session_, options_);
      world_.barrier();
      EXPECT_EQ(contents(), before) << resume;
    }
    release();
  }
}

TEST_F(CustomRunTest, only_rank_0_may_report) {
  {
    CustomRun run(session_, options_);
    run.begin();
    if (!is_first()) {
      expect_error(Failure::usage, {"rank 1", "training", "rank 0"}, [&] { run.report_training_metrics(1, {}); });
      expect_error(Failure::usage, {"rank 1", "validation", "rank 0"}, [&] { run.report_validation_metrics(1, {}); });
    }
  }
  release();
}

TEST_F(CustomRunTest, mistakes_in_calls_are_named) {
  {
    CustomRun run(session_, options_);
    run.begin();
    if (is_first()) {
      const auto expect_refused = [&](Subjects subjects, std::int64_t step, const MetricValues& metrics) {
        expect_error(Failure::usage, subjects, [&] { run.report_training_metrics(step, metrics); });
      };
      expect_refused({"11 steps", "10"}, 11, {{"x", 1}});
      expect_refused({"'a b'"}, 1, {{"a b", 1}});
      expect_refused({"'step'"}, 1, {{"step", 1}});
      MetricValues many;
      for (int index = 0; index < 2000; ++index) many["a-metric-with-a-long-name-" + std::to_string(index)] = index;
      expect_refused({"2000"}, 1, many);
      EXPECT_TRUE(lines().empty());
      expect_error(Failure::usage, {"'metrics.jsonl'"}, [&] { run.write_result("metrics.jsonl", {}); });
    }
    run.save_checkpoint(4, {}, nlohmann::json::object());
    run.save_checkpoint(4, {}, {{"again", true}});  // which changes nothing
    expect_error(Failure::usage, {"step 3", "step 4"}, [&] { run.save_checkpoint(3, {}, nlohmann::json::object()); });
  }
  release();
  CustomRun run(session_, options_);
  run.begin();
  EXPECT_EQ(run.restored().metadata, nlohmann::json::object());
  release();
}

TEST_F(CustomRunTest, resumes_from_the_newest_checkpoint) {
  run_up_to({2, 4, 6});
  if (is_first()) {
    EXPECT_FALSE(fs::exists(checkpoint(2))) << "two are kept";
    std::ofstream(options_.output / "metrics.jsonl", std::ios::app) << R"({"kind":"training","epoch":1,"step":7,"x":7})"
                                                                    << "\n";
  }
  world_.barrier();
  {
    CustomRun run(session_, options_);
    run.begin();
    EXPECT_EQ(run.steps_completed(), 6);
    EXPECT_EQ(run.restored().arrays.at("x"), (std::vector<float>{6}));
    EXPECT_EQ(run.restored().metadata, (nlohmann::json{{"steps_completed", 6}}));
    world_.barrier();
    EXPECT_EQ(lines().size(), 3U) << "the later one will be reported again";
    EXPECT_EQ(read_summary(options_.output)->interruptions.size(), 1U);
  }
  release();
}

// Rank 0 writes what all ranks give together: here, the sum of their numbers.
TEST_F(CustomRunTest, arrays_that_ranks_share_are_written_block_by_block) {
  const std::vector<StreamedArray> arrays{{"x", 2, 1, [&](std::int64_t first, std::span<float> values) {
                                             for (std::size_t i = 0; i < values.size(); ++i) {
                                               values[i] = static_cast<float>(
                                                   world_.sum(static_cast<double>(first) + static_cast<double>(i) + 1));
                                             }
                                           }}};
  const auto size = static_cast<float>(world_.size());
  {
    CustomRun run(session_, options_);
    run.begin();
    run.stream_checkpoint(3, arrays, {{"steps_completed", 3}});
    run.stream_checkpoint(3, arrays, {{"again", true}});  // which changes nothing
    EXPECT_EQ(run.stream_result("model.h5", {3, {}, {{"error", 0.5}}}, arrays), "");
    if (is_first()) {
      std::string image = read_file(options_.output / "model.h5", tensor_file_limits::file_bytes);
      const CustomCheckpoint model = parse_custom_checkpoint("model.h5", image);
      EXPECT_EQ(model.arrays.at("x"), (std::vector<float>{size, 2 * size}));
      EXPECT_EQ(model.metadata, (nlohmann::json{{"error", 0.5}}));
    }
    expect_error(Failure::usage, {"absent"}, [&] { (void)run.stream_result("absent/model.h5", {3}, arrays); });
  }
  release();
  for (const RestoredArrays restored : {RestoredArrays::on_rank_0, RestoredArrays::on_all_ranks}) {
    options_.restored_arrays = restored;
    {
      CustomRun run(session_, options_);
      run.begin();
      EXPECT_EQ(run.restored().metadata, (nlohmann::json{{"steps_completed", 3}}));
      const NamedArrays taken = run.take_restored_arrays();
      EXPECT_TRUE(run.restored().arrays.empty());
      if (is_first() || restored == RestoredArrays::on_all_ranks) {
        EXPECT_EQ(taken, (NamedArrays{{"x", {size, 2 * size}}}));
      } else {
        EXPECT_TRUE(taken.empty());
      }
    }
    release();
  }
}

TEST_F(CustomRunTest, a_damaged_checkpoint_is_skipped_with_a_warning) {
  run_up_to({4, 6});
  if (is_first()) std::ofstream(checkpoint(6)) << "no checkpoint";
  world_.barrier();
  testing::internal::CaptureStderr();
  {
    CustomRun run(session_, options_);
    run.begin();
    EXPECT_EQ(run.steps_completed(), 4);
  }
  const std::string warning = testing::internal::GetCapturedStderr();
  EXPECT_THAT(warning, is_first() ? HasSubstr("'" + checkpoint(6).string() + "'") : HasSubstr(""));
  release();
  if (is_first()) std::ofstream(checkpoint(4)) << "no checkpoint";
  world_.barrier();
  expect_agreed(Failure::bad_data, {"1 checkpoint", "--resume never"},
                [&] { const CustomRun run(session_, options_); });
  options_.resume = "never";
  CustomRun run(session_, options_);
  run.begin();
  EXPECT_EQ(run.steps_completed(), 0);
  release();
}

TEST_F(CustomRunTest, resumes_from_a_checkpoint_that_is_named) {
  run_up_to({2, 4});
  options_.resume = checkpoint(2).string();
  {
    CustomRun run(session_, options_);
    run.begin();
    EXPECT_EQ(run.steps_completed(), 2);
    EXPECT_FALSE(fs::exists(checkpoint(4))) << "it would be taken for one of this run";
  }
  release();
  options_.output = options_.output.parent_path() / "another";
  {
    CustomRun run(session_, options_);
    run.begin();
    run.save_checkpoint(2, {}, {{"other", true}});
    EXPECT_TRUE(fs::exists(checkpoint(2))) << "without it, the same command could not resume";
  }
  release();
}

// Its own checkpoints and results were set aside first, and stayed there.
TEST_F(CustomRunTest, a_named_checkpoint_without_room_leaves_all_as_it_is) {
  run_up_to({2, 4});
  options_.resume = checkpoint(4).string();
  options_.output = options_.output.parent_path() / "another";
  {
    CustomRunOptions own = options_;
    own.resume = "auto";
    std::swap(own, options_);
    run_up_to({6});
    std::swap(own, options_);
  }
  {
    CustomRun run(session_, options_);
    const NoRoomBeyond no_room(100);
    EXPECT_THROW(run.begin(), AgreedError);
  }
  release();
  EXPECT_TRUE(fs::exists(checkpoint(6)));
  EXPECT_TRUE(fs::exists(options_.output / "metrics.jsonl"));
  EXPECT_FALSE(fs::exists(options_.output / "set-aside-1"));
}

TEST_F(CustomRunTest, refuses_a_checkpoint_of_another_run) {
  run_up_to({4});
  const auto start = [&] { const CustomRun run(session_, options_); };
  options_.max_steps = 3;
  expect_agreed(Failure::usage, {"step 4", "--max-steps is 3"}, start);
  options_.max_steps = 10;
  options_.of_program = {{"increment-by", "2"}, {"new", "1"}};
  expect_agreed(Failure::usage, {"--increment-by", "\"1\"", "\"2\"", "--new"}, start);
}

TEST_F(CustomRunTest, all_ranks_stop_when_one_is_asked) {
  ProcessSignals signals(Stopping::graceful);
  session_.signals = &signals;
  {
    CustomRun run(session_, options_);
    run.begin();
    EXPECT_FALSE(run.should_preempt());
    if (world_.rank() + 1 == world_.size()) std::raise(SIGUSR1);
    EXPECT_TRUE(run.should_preempt());
    run.save_checkpoint(5, {}, nlohmann::json::object());
    const Ending ending = run.conclude();
    EXPECT_EQ(ending.code, static_cast<int>(Failure::stopped_early));
    expect_message(ending.sentence, {"step 5", "SIGUSR1", options_.output.string()});
    EXPECT_EQ(read_summary(options_.output)->state, RunState::stopped);
  }
  release();
}

// It would be started again and again, and never come further.
TEST_F(CustomRunTest, a_stop_without_a_checkpoint_is_a_failure) {
  options_.time_limit_seconds = 0.001;
  {
    CustomRun run(session_, options_);
    run.begin();
    EXPECT_TRUE(run.should_preempt());
    const Ending ending = run.conclude();
    EXPECT_EQ(ending.code, static_cast<int>(Failure::other));
    expect_message(ending.sentence, {"--time-limit", "checkpoint"});
  }
  release();
}

TEST_F(CustomRunTest, a_full_disk_costs_a_checkpoint_but_not_the_run) {
  {
    CustomRun run(session_, options_);
    run.begin();
    run.save_checkpoint(2, {{"x", {2}}}, nlohmann::json::object());
    {
      const NoRoomBeyond no_room(100);
      run.save_checkpoint(4, {{"x", {4}}}, nlohmann::json::object());
      EXPECT_NE(run.stream_result("model.h5", {4}, {}), "");
    }
    world_.barrier();
    EXPECT_FALSE(fs::exists(checkpoint(4)));
    EXPECT_FALSE(fs::exists(run.result("model.h5")));
    EXPECT_TRUE(fs::exists(checkpoint(2)));
    run.save_checkpoint(4, {{"x", {4}}}, nlohmann::json::object());
    EXPECT_EQ(run.stream_result("model.h5", {4}, {}), "");
    EXPECT_TRUE(fs::exists(checkpoint(4)));
    EXPECT_EQ(run.conclude().code, 0);
  }
  release();
}

// The stop became a failure, and its reason and the checkpoint's step were lost.
TEST_F(CustomRunTest, a_summary_without_room_fails_only_what_is_done) {
  ProcessSignals signals(Stopping::graceful);
  session_.signals = &signals;
  const auto conclude = [&](auto before, auto without_room) {
    Ending ending;
    {
      CustomRun run(session_, options_);
      run.begin();
      before(run);
      const NoRoomBeyond no_room(100);
      without_room(run);
      ending = run.conclude();
    }
    release();
    return ending;
  };
  const auto save = [](CustomRun& run) {
    run.save_checkpoint(run.steps_completed() + 2, {}, nlohmann::json::object());
  };
  const auto nothing = [](CustomRun& /*run*/) {};
  const Ending failed = conclude(save, [&](CustomRun& run) { run.save_checkpoint(4, {}, nlohmann::json::object()); });
  expect_message(failed.sentence, {"checkpoint", "resumes from step 2"});
  const auto stop = [&](CustomRun& run) {
    std::raise(SIGUSR1);
    EXPECT_TRUE(run.should_preempt());
    save(run);
  };
  const Ending stopped = conclude(stop, nothing);
  EXPECT_EQ(stopped.code, static_cast<int>(Failure::stopped_early));
  expect_message(stopped.sentence, {"step 4", "SIGUSR1"});
}

TEST_F(CustomRunTest, a_last_checkpoint_that_is_not_written_is_a_failure) {
  ProcessSignals signals(Stopping::graceful);
  session_.signals = &signals;
  for (const bool is_stopped : {false, true}) {
    {
      CustomRun run(session_, options_);
      run.begin();
      if (is_stopped) std::raise(SIGUSR1);
      EXPECT_EQ(run.should_preempt(), is_stopped);
      if (!is_stopped) run.save_checkpoint(2, {}, nlohmann::json::object());
      {
        const NoRoomBeyond no_room(100);
        run.save_checkpoint(4, {}, nlohmann::json::object());
      }
      const Ending ending = run.conclude();
      EXPECT_EQ(ending.code, static_cast<int>(Failure::other));
      expect_message(ending.sentence, {"checkpoint", options_.output.string()});
      EXPECT_NE(ending.sentence.find("resumes from step 2"), std::string::npos) << ending.sentence;
      EXPECT_EQ(read_summary(options_.output)->state, is_stopped ? RunState::stopped : RunState::failed);
    }
    release();
  }
}

}  // namespace lockstep::custom_run_test
