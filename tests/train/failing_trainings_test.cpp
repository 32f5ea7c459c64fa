// Trainings side by side, one of which fails: it ends on all of its ranks, with its reason; the others and the process
// go on.
#include <gtest/gtest.h>
#include <pthread.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/io/file.hpp"
#include "base/log.hpp"
#include "runtime/failure/failure_report.hpp"
#include "runtime/watch/rank_status.hpp"
#include "support/samples/small_data_set.hpp"
#include "support/temporary_folder.hpp"
#include "train/failing_allocation.hpp"
#include "train/train.hpp"

namespace lockstep::failing_trainings_test {

namespace fs = std::filesystem;

// The ranks of each training, and which training fails on its last rank (or on its rank 0 if rank 0 does the work).
struct Layout {
  std::vector<int> ranks;
  int faulty;
};

// Called on the ranks of the faulty training; `fails`: whether this rank is the one that fails.
using Cause = std::function<void(Settings& settings, const fs::path& root, bool fails)>;

struct Fault {
  const char* name;
  Failure failure;
  bool is_of_rank_0;  // of the training
  Cause cause;
};

Cause no_memory(std::array<Phase, 2> phases, std::size_t least_bytes, std::int64_t first_step) {
  return [=](Settings&, const fs::path&, bool fails) {
    if (!fails) return;
    failing_allocation.thread = ::pthread_self();
    failing_allocation.phases = phases;
    failing_allocation.least_bytes = least_bytes;
    failing_allocation.first_step = first_step;
    failing_allocation.is_armed = true;
  };
}

Cause data_in(const char* copy) {
  return [=](Settings&, const fs::path& root, bool fails) {
    if (fails) fs::current_path(root / copy);
  };
}

constexpr int refusals = 6;

const std::vector<Fault> all_faults = {
    // start: refusals
    {"no validation split", Failure::usage, true,
     [](Settings& settings, const fs::path&, bool) {
       settings.recipe.early_stop = parse_early_stop("validation-loss:1:0");
     }},
    {"batch larger than the data", Failure::usage, true,
     [](Settings& settings, const fs::path&, bool) { settings.recipe.batch.global_batch = {6400}; }},
    {"reducer of GPUs", Failure::usage, true,
     [](Settings& settings, const fs::path&, bool) { settings.run.sums.reducer = "nccl"; }},
    {"damaged checkpoint", Failure::bad_data, true,
     [](Settings& settings, const fs::path& root, bool) {
       settings.run.checkpoints.resume = (root / "whole/data/train/shard-0.h5").string();
     }},
    {"missing weights", Failure::usage, true,
     [](Settings& settings, const fs::path& root, bool) { settings.recipe.init.file = root / "none.h5"; }},
    {"damaged manifest", Failure::bad_data, false, data_in("damaged-manifest")},
    {"no memory for the model", Failure::out_of_memory, false,
     no_memory({Phase::opening_data, Phase::opening_data}, 1, 0)},
    // step
    {"damaged training sample", Failure::bad_data, false, data_in("damaged-train")},
    {"no memory in forward", Failure::out_of_memory, false, no_memory({Phase::forward, Phase::forward}, 1, 3)},
    {"no memory in backward", Failure::out_of_memory, false, no_memory({Phase::backward, Phase::backward}, 1, 12)},
    {"no memory to report a step", Failure::out_of_memory, true,
     no_memory({Phase::updating, Phase::gathering_weights}, 32, 4)},
    // test and checkpoint
    {"damaged test sample", Failure::bad_data, false, data_in("damaged-test")},
    {"no memory in a test", Failure::out_of_memory, false, no_memory({Phase::testing, Phase::testing}, 1, 11)},
    {"no memory for a checkpoint", Failure::out_of_memory, true,
     no_memory({Phase::testing, Phase::testing}, std::size_t{1} << 17U, 10)},
    {"no memory for the last checkpoint", Failure::out_of_memory, true,
     no_memory({Phase::saving, Phase::saving}, std::size_t{1} << 17U, 20)},
};

class FailingTrainingsTest : public testing::Test {
 protected:
  FailingTrainingsTest() {
    log::set_identity(world_.rank(), "n1");
    failure_report::set_rank(world_.rank(), "n1");
    root_ = world_.broadcast(folder_.path().string(), 0);
    if (world_.rank() == 0) write_data();
    world_.barrier();
    fs::current_path(root_ / "whole");
  }
  ~FailingTrainingsTest() override {
    fs::current_path("/");
    world_.barrier();
  }

  // How gradients are summed does not matter to refusals, so two layouts have them, and in a long test all.
  void leave_out_refusals() {
    const char* const all = std::getenv("LOCKSTEP_ALL_FAULTS");  // NOLINT(concurrency-mt-unsafe): nobody sets it
    if (all == nullptr) faults_.erase(faults_.begin(), faults_.begin() + refusals);
  }

  void write_data() const {
    constexpr std::int64_t block_bytes = 1 << 15;
    write_small_data_set(root_ / "whole/data/train", {32, 32, 3}, 160, 160, SampleStore::images, block_bytes);
    write_small_data_set(root_ / "whole/data/test", {32, 32, 3}, 40, 40, SampleStore::images, block_bytes);
    for (const char* copy : {"damaged-manifest", "damaged-train", "damaged-test"}) {
      fs::copy(root_ / "whole", root_ / copy, fs::copy_options::recursive);
    }
    overwrite(root_ / "damaged-manifest/data/train" / manifest_file, 1);
    for (const char* split : {"train", "test"}) {
      const fs::path shard = root_ / (std::string("damaged-") + split) / "data" / split / "shard-0.h5";
      overwrite(shard, static_cast<std::streamoff>(fs::file_size(shard) / 2));
    }
  }
  static void overwrite(const fs::path& file, std::streamoff at) {
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekp(at) << std::string(20'000, '\xA5').substr(0, at == 1 ? 1 : std::string::npos);
  }

  // This rank's training in `layout`.
  static int training_of(const Layout& layout, int rank) {
    int training = 0;
    for (int end = layout.ranks[0]; rank >= end; end += layout.ranks[static_cast<std::size_t>(training)]) ++training;
    return training;
  }
  Settings settings_of(int training, const std::string& output) const {
    Settings settings;
    Recipe& recipe = settings.recipe;
    recipe.model = "lenet";
    settings.run.data = "data";  // in the current folder, so that a rank can have another copy
    settings.run.output = root_ / (output + "-" + std::to_string(training));
    settings.run.report_every = 2;
    settings.run.audit_every = 4;
    recipe.epochs = {2};
    recipe.seed = static_cast<std::uint64_t>(training) + 1;
    recipe.batch.global_batch = {16};
    recipe.learning_rate.base_batch = 0;
    recipe.learning_rate.schedule = Schedule::constant;
    recipe.learning_rate.warmup_epochs = 0;
    change_(settings);
    return settings;
  }

  void fail_in_every_way(const Layout& layout) {
    const int own = training_of(layout, world_.rank());
    const Communicator team = world_.split(own, world_.rank());
    const Session session{.world = team,
                          .backend = open_backend({.name = "cpu", .threads = 1}),
                          .label = "training " + std::to_string(own)};
    const auto run = [&](const Settings& settings) { return train(session, ValidSettings(settings)); };
    const bool is_faulty = own == layout.faulty;
    const TrainingOutcome alone = run(settings_of(own, "alone"));
    ASSERT_EQ(alone.end, End::done) << alone.sentence;
    for (const Fault& fault : faults_) {
      const testing::Message which = testing::Message() << fault.name << ", rank " << world_.rank();
      const std::string output = std::string("fails ") + fault.name;
      if (world_.rank() == 0) std::cout << "[          ] " << fault.name << std::endl;
      Settings settings = settings_of(own, output);
      const int failing = fault.is_of_rank_0 ? 0 : team.size() - 1;
      if (is_faulty) fault.cause(settings, root_, team.rank() == failing);
      const TrainingOutcome outcome = run(settings);
      fs::current_path(root_ / "whole");
      world_.barrier();  // rank 0 has released the folder
      EXPECT_FALSE(failing_allocation.is_armed.exchange(false)) << which;
      if (is_faulty) {
        expect_failure(outcome, fault, settings.run.output, world_.rank() - team.rank() + failing);
      } else {
        EXPECT_EQ(outcome.end, End::done) << which << ": " << outcome.sentence;
        EXPECT_EQ(outcome.weights_hash, alone.weights_hash) << which;
      }
      if (!is_run_again_) continue;
      const TrainingOutcome again = run(settings_of(own, output));
      EXPECT_EQ(again.end, End::done) << which << ": " << again.sentence;
      EXPECT_EQ(again.weights_hash, alone.weights_hash) << which << ": run again";
    }
  }

  static void expect_failure(const TrainingOutcome& outcome, const Fault& fault, const fs::path& output, int rank) {
    EXPECT_EQ(outcome.end, End::failed) << fault.name;
    EXPECT_EQ(outcome.failure, fault.failure) << fault.name << ": " << outcome.sentence;
    EXPECT_EQ(outcome.rank, rank) << fault.name;
    EXPECT_NE(outcome.sentence, "") << fault.name;
    EXPECT_FALSE(fs::exists(output / "lock")) << fault.name;
    if (!fs::exists(output)) return;  // refused before it was made
    if (!fs::exists(output / "failure.json")) {
      ADD_FAILURE() << fault.name << ": no report";
      return;
    }
    const nlohmann::json failure = nlohmann::json::parse(read_file(output / "failure.json", 1 << 16));
    EXPECT_EQ(failure["code"], static_cast<int>(fault.failure)) << fault.name;
    EXPECT_EQ(failure["sentence"], outcome.sentence) << fault.name;
    EXPECT_EQ(failure["rank"], rank) << fault.name;
    if (!fs::exists(output / "summary.json")) return;
    EXPECT_EQ(nlohmann::json::parse(read_file(output / "summary.json", 1 << 20))["state"], "failed") << fault.name;
  }

  Communicator world_{MPI_COMM_WORLD};
  TemporaryFolder folder_;
  fs::path root_;
  std::vector<Fault> faults_ = all_faults;
  bool is_run_again_ = true;  // in the same process, after each failure
  void (*change_)(Settings&) = [](Settings&) {};
};

TEST_F(FailingTrainingsTest, of_two_with_shared_memory) {
  change_ = [](Settings& settings) { settings.run.sums.reducer = "shared"; };
  fail_in_every_way({{2, 2}, 0});
}

TEST_F(FailingTrainingsTest, of_three_with_mpi_on_one_rank) {
  is_run_again_ = false;
  change_ = [](Settings& settings) { settings.run.sums.reducer = "mpi"; };
  fail_in_every_way({{2, 1, 1}, 1});
}

TEST_F(FailingTrainingsTest, of_two_with_mpi) {
  is_run_again_ = false;
  leave_out_refusals();
  change_ = [](Settings& settings) { settings.run.sums.reducer = "mpi"; };
  fail_in_every_way({{2, 2}, 1});
}

TEST_F(FailingTrainingsTest, of_three_with_virtual_ranks) {
  leave_out_refusals();
  change_ = [](Settings& settings) { settings.recipe.batch.virtual_ranks = 4; };
  fail_in_every_way({{1, 2, 1}, 1});
}

TEST_F(FailingTrainingsTest, of_two_with_a_sharded_optimizer) {
  leave_out_refusals();
  change_ = [](Settings& settings) { settings.run.sums.shard_optimizer = true; };
  faults_.pop_back();  // its last checkpoint is written again
  fail_in_every_way({{2, 2}, 1});
}

TEST_F(FailingTrainingsTest, of_two_with_local_updates) {
  leave_out_refusals();
  change_ = [](Settings& settings) {
    settings.recipe.sync = Sync::local;
    settings.recipe.batch.local_steps = 2;
    settings.recipe.epochs = {4};  // as many steps
  };
  faults_.pop_back();  // its last checkpoint is written again
  faults_.pop_back();  // no later test is the best one, so no model is written
  fail_in_every_way({{2, 2}, 1});
}

// The one that fails is the server, which has no samples.
TEST_F(FailingTrainingsTest, of_two_trainers_and_a_server) {
  leave_out_refusals();
  change_ = [](Settings& settings) {
    const bool has_one_rank = settings.recipe.seed == 1;
    if (!has_one_rank) settings.recipe.sync = Sync::servers;
  };
  faults_.pop_back();  // its last checkpoint is written again
  std::erase_if(faults_, [](const Fault& fault) {
    const std::string name = fault.name;
    return name == "damaged training sample" || name == "no memory in forward" || name == "no memory in backward" ||
           name == "reducer of GPUs";
  });
  fail_in_every_way({{1, 3}, 1});
}

}  // namespace lockstep::failing_trainings_test
