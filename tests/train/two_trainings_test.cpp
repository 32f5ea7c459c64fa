// Trainings on parts of a job's ranks, side by side and one after another, each with files and an ending of its own.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "base/io/file.hpp"
#include "base/log.hpp"
#include "runtime/failure/failure_report.hpp"
#include "support/messages.hpp"
#include "support/samples/small_data_set.hpp"
#include "support/temporary_folder.hpp"
#include "train/train.hpp"

namespace lockstep::two_trainings_test {

namespace fs = std::filesystem;

class TwoTrainingsTest : public testing::Test {
 protected:
  TwoTrainingsTest() {
    log::set_identity(world_.rank(), "n1");
    failure_report::set_rank(world_.rank(), "n1");
    root_ = world_.broadcast(folder_.path().string(), 0);
    if (world_.rank() == 0) {
      for (const char* data : {"a", "b"}) {
        const SampleShape shape = *data == 'a' ? SampleShape{32, 32, 3} : SampleShape{32, 32, 1};
        write_small_data_set(root_ / data / "train", shape, 160, 50);
        write_small_data_set(root_ / data / "test", shape, 20, 20);
      }
    }
    world_.barrier();
  }
  ~TwoTrainingsTest() override { world_.barrier(); }

  bool is_first_half() const { return world_.rank() < world_.size() / 2; }
  // Each half trains on other samples, for longer, with another seed.
  Settings settings_of_half(const std::string& output) const {
    Settings settings;
    Recipe& recipe = settings.recipe;
    recipe.model = "lenet";
    settings.run.data = root_ / (is_first_half() ? "a" : "b");
    settings.run.output = root_ / (output + (is_first_half() ? "-a" : "-b"));
    recipe.epochs = {is_first_half() ? 2 : 3};
    recipe.seed = is_first_half() ? 1 : 2;
    recipe.batch.global_batch = {is_first_half() ? 16 : 32};
    recipe.learning_rate.base_batch = 0;
    recipe.learning_rate.schedule = Schedule::constant;
    recipe.learning_rate.warmup_epochs = 0;
    return settings;
  }
  Session session_of_half() const {
    return {.world = half_,
            .backend = open_backend({.name = "cpu", .threads = 1}),
            .label = is_first_half() ? "first" : "second"};
  }
  static TrainingOutcome run(const Session& session, const Settings& settings) {
    return train(session, ValidSettings(settings));
  }
  static nlohmann::json json_in(const fs::path& file) { return nlohmann::json::parse(read_file(file, 1 << 16)); }
  static std::int64_t last_step_in(const fs::path& metrics) {
    std::ifstream lines(metrics);
    std::int64_t step = 0;
    for (std::string line; std::getline(lines, line);) step = nlohmann::json::parse(line)["step"];
    return step;
  }

  TemporaryFolder folder_;
  Communicator world_{MPI_COMM_WORLD};
  Communicator half_ = world_.split(world_.rank() < world_.size() / 2 ? 0 : 1, world_.rank());
  fs::path root_;
};

TEST_F(TwoTrainingsTest, side_by_side_each_learns_what_it_learns_alone) {
  const Session session = session_of_half();
  const auto train_to = [&](const std::string& output) { return run(session, settings_of_half(output)); };
  TrainingOutcome alone;
  for (const bool first : {true, false}) {
    if (is_first_half() == first) alone = train_to("alone");
    world_.barrier();
  }
  const TrainingOutcome together = train_to("together");
  EXPECT_EQ(together.end, End::done);
  EXPECT_EQ(together.sentence, "");
  EXPECT_EQ(together.steps, is_first_half() ? 20 : 15);
  EXPECT_EQ(together.weights_hash, alone.weights_hash);
  EXPECT_EQ(together.test_loss, alone.test_loss);
  const std::vector<std::string> hashes = world_.all_gather(together.weights_hash);
  EXPECT_EQ(hashes.front() == together.weights_hash, is_first_half());

  const fs::path output = settings_of_half("together").run.output;
  EXPECT_EQ(last_step_in(output / "metrics.jsonl"), together.steps);
  EXPECT_EQ(json_in(output / "summary.json")["weights_hash"], together.weights_hash);
  EXPECT_EQ(together.checkpoint.parent_path(), output / "checkpoints");
  EXPECT_TRUE(fs::exists(together.checkpoint));
  EXPECT_FALSE(fs::exists(output / "failure.json"));
  EXPECT_FALSE(fs::exists(output / "lock")) << "the folder is given back with the training's end";
}

TEST_F(TwoTrainingsTest, one_diverges_while_the_other_ends_well) {
  Settings settings = settings_of_half("one");
  if (!is_first_half()) settings.recipe.learning_rate.rate = 1e9;
  const Session session = session_of_half();
  const TrainingOutcome outcome = run(session, settings);
  EXPECT_EQ(outcome.end, is_first_half() ? End::done : End::diverged);
  EXPECT_EQ(json_in(settings.run.output / "summary.json")["state"], is_first_half() ? "done" : "diverged");
  EXPECT_EQ(fs::exists(settings.run.output / "failure.json"), !is_first_half());
  if (is_first_half()) return;
  EXPECT_EQ(outcome.failure, Failure::diverged);
  EXPECT_EQ(outcome.checkpoint, settings.run.output / "checkpoints" / "step-000000000000.h5");
  for (const std::string& subject : {std::string("1e+09"), std::string("--lr"), std::string("--init-from"),
                                     "'" + outcome.checkpoint.string() + "'"}) {
    EXPECT_NE(outcome.sentence.find(subject), std::string::npos) << outcome.sentence;
  }
  const nlohmann::json failure = json_in(settings.run.output / "failure.json");
  EXPECT_EQ(failure["code"], 79);
  EXPECT_EQ(failure["sentence"], outcome.sentence);
  EXPECT_EQ(failure["rank"], world_.size() / 2) << "as the job counts";
}

TEST_F(TwoTrainingsTest, one_is_out_of_time_while_the_other_goes_on_to_its_end) {
  Settings settings = settings_of_half("time");
  if (is_first_half()) settings.run.time_limit_seconds = 0;
  const Session session = session_of_half();
  const TrainingOutcome outcome = run(session, settings);
  if (!is_first_half()) {
    EXPECT_EQ(outcome.end, End::done);
    return;
  }
  EXPECT_EQ(outcome.end, End::stopped);
  EXPECT_EQ(outcome.steps, 1);
  EXPECT_EQ(outcome.failure, Failure::stopped_early);
  EXPECT_EQ(json_in(settings.run.output / "failure.json")["code"], 75);

  settings.run.time_limit_seconds.reset();
  EXPECT_EQ(run(session, settings).steps, 20) << "it goes on where it stopped";
}

TEST_F(TwoTrainingsTest, one_after_another_in_one_process_learn_what_they_learn_alone) {
  const Session session = session_of_half();
  const TrainingOutcome first = run(session, settings_of_half("once"));
  Settings other = settings_of_half("between");
  other.recipe.learning_rate.rate = 1e9;
  EXPECT_EQ(run(session, other).end, End::diverged);
  const TrainingOutcome again = run(session, settings_of_half("again"));
  EXPECT_EQ(again.end, End::done);
  EXPECT_EQ(again.weights_hash, first.weights_hash);
  EXPECT_EQ(again.steps, first.steps);
  EXPECT_FALSE(fs::exists(settings_of_half("again").run.output / "failure.json"));
  EXPECT_TRUE(fs::exists(other.run.output / "failure.json"));
}

// Whoever asks a process asks every training of it, and those that come. The failure of an earlier attempt stayed in
// the folder where an attempt was stopped before it took the lock.
TEST_F(TwoTrainingsTest, a_signal_stops_the_training_of_the_ranks_it_is_sent_to_and_no_other_begins_there) {
  ProcessSignals signals(Stopping::graceful);
  Session session = session_of_half();
  session.signals = &signals;
  const Settings settings = settings_of_half("signal");
  const fs::path failure = settings.run.output / "failure.json";
  if (half_.rank() == 0) {
    fs::create_directory(settings.run.output);
    std::ofstream(failure) << R"({"code": 1, "sentence": "an earlier attempt"})";
  }
  half_.barrier();
  if (world_.rank() == world_.size() - 1) ::raise(SIGTERM);
  const TrainingOutcome outcome = run(session, settings);
  EXPECT_EQ(outcome.end, is_first_half() ? End::done : End::stopped);
  if (is_first_half()) return;
  EXPECT_EQ(outcome.steps, 0);
  expect_message(outcome.sentence, {});
  EXPECT_EQ(json_in(failure)["code"], 75);
  EXPECT_EQ(json_in(failure)["sentence"], outcome.sentence);
}

}  // namespace lockstep::two_trainings_test
