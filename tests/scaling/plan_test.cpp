#include "scaling/plan.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "made_up_study.hpp"
#include "support/message_of.hpp"
#include "support/messages.hpp"
#include "support/samples/small_checkpoint.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::plan_test {

using ::testing::HasSubstr;

constexpr std::int64_t imagenet = 1'281'167;

TrainingPlan planned(const MadeUpMachine& machine, const PlanRequest& request) {
  const Study study = made_up_study(machine);
  return plan_training(study, model_of(study), request);
}

TEST(Plan, an_epoch_is_its_whole_steps_and_its_test) {
  const MadeUpMachine machine;
  const TrainingPlan plan = planned(machine, {{1024, 1}, 32, imagenet, 50'000, 90});
  const double step = made_up_point(machine, 1024, 32).step_seconds[0];
  EXPECT_NEAR(plan.step.step.middle, step, 0.01 * step);
  const double test = 49 * machine.seconds_a_sample * (1 - machine.backward_share);  // 48.8 samples a rank
  EXPECT_NEAR(plan.epoch.middle, 39 * step + test, 0.01 * plan.epoch.middle);        // 39.1 batches of 32,768
  EXPECT_DOUBLE_EQ(plan.training.middle, 90 * plan.epoch.middle);
  EXPECT_NEAR(planned(machine, {{1024, 1}, 32, imagenet, 0, 1}).epoch.middle, plan.epoch.middle - test, 1e-3);
}

TEST(Plan, nodes_cost_hours_and_batches_memory) {
  const MadeUpMachine machine{.ranks_per_node = 2};
  const TrainingPlan plan = planned(machine, {{8, 4}, 32, imagenet, 0, 10});
  EXPECT_DOUBLE_EQ(plan.node_hours, plan.training.middle * 4 / 3600);
  EXPECT_NEAR(plan.memory_bytes, 132e6, 1);  // as the machine has it: 100 MB, and 1 MB a sample
  EXPECT_NEAR(planned(machine, {{8, 4}, 256, imagenet, 0, 10}).memory_bytes, 356e6, 1);
  EXPECT_DOUBLE_EQ(plan.checkpoint_bytes, 8.0 * 269'722);
}

TEST(Plan, efficiency_is_that_beside_one_rank_with_the_same_batch) {
  const MadeUpMachine machine;
  const double kept = made_up_point(machine, 1, 8).step_seconds[0] / made_up_point(machine, 64, 8).step_seconds[0];
  EXPECT_NEAR(planned(machine, {{64, 1}, 8, imagenet, 0, 1}).efficiency, kept, 0.01);
}

TEST(Plan, slurm_is_asked_for_the_upper_end_and_more) {
  const TrainingPlan plan = planned({.noise = 0.05}, {{64, 1}, 32, imagenet, 0, 1000});
  EXPECT_GT(plan.training.high, 1.01 * plan.training.middle);
  EXPECT_GE(60.0 * static_cast<double>(plan.time_limit_minutes), 1.1 * plan.training.high + 300);
  EXPECT_LE(60.0 * static_cast<double>(plan.time_limit_minutes), 1.1 * plan.training.high + 360);
  EXPECT_EQ(plan.notice_seconds, 30);
  Study study = made_up_study({});
  study.parameters = 1'000'000'000;
  EXPECT_EQ(plan_training(study, model_of(study), {{64, 1}, 32, imagenet, 0, 1}).notice_seconds, 90);  // 8 GB: 80 s
}

TEST(Plan, times_are_written_as_slurm_reads_them) {
  EXPECT_EQ(slurm_time(5), "00:05:00");
  EXPECT_EQ(slurm_time(24 * 60 - 1), "23:59:00");
  EXPECT_EQ(slurm_time(26 * 60 + 30), "1-02:30:00");
}

TEST(Plan, it_is_told_as_a_table_and_as_what_to_ask_for) {
  const std::vector<TrainingPlan> plans = {planned({}, {{8, 1}, 32, imagenet, 0, 90}),
                                           planned({}, {{1024, 1}, 32, imagenet, 0, 90})};
  EXPECT_EQ(plans_table(plans),
            "ranks  nodes  batch  samples/s    step, ms  efficiency, %\n"
            "    8      1    256       6506  39.4 ± 0.0           86.7\n"
            " 1024      1  32768     796359  41.1 ± 0.0           82.9\n"
            "\n"
            "ranks  epoch  training  node-hours  memory, MB\n"
            "    8   3:17   4:55:22         4.9         132\n"
            " 1024   0:02      2:24         0.0         132");
  expect_message(plan_advice(plans[1]),
                 {"sbatch --nodes=1 --ntasks-per-node=1024 --time=00:", "--signal=B:USR1@30 ", "2.2 MB"});
}

// It asked for 8 tasks.
TEST(Plan, slurm_is_asked_for_as_many_tasks_as_ranks) {
  const MadeUpMachine machine{.ranks_per_node = 2};
  const auto advice = [&](const RankGrid& grid) { return plan_advice(planned(machine, {grid, 32, imagenet, 0, 1})); };
  EXPECT_THAT(advice({7, 2}), HasSubstr("sbatch --nodes=2 --ntasks=7 --ntasks-per-node=4 --time="));
  EXPECT_THAT(advice({8, 2}), HasSubstr("sbatch --nodes=2 --ntasks-per-node=4 --time="));
}

// It was 127 columns wide.
TEST(Plan, its_tables_fit_a_terminal) {
  Study study = made_up_study({.seconds_a_sample = 0.3, .noise = 0.1, .ranks_per_node = 2});
  add_varied(study, {.exchange = {.powersgd_rank = 64}}, 1);
  std::vector<TrainingPlan> plans;
  for (const Exchange& exchange : {Exchange{.powersgd_rank = 64}, Exchange{.local_steps = 16}}) {
    plans.push_back(plan_training(study, model_of(study), {{16384, 8192}, 64, 1'000'000'000, 0, 9999, exchange}));
  }
  std::istringstream table(plans_table(plans));
  for (std::string line; std::getline(table, line);) {
    EXPECT_LE(
        std::ranges::count_if(line, [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U; }), 80)
        << line;
  }
}

TEST(Plan, buckets_that_would_help_are_named) {
  const MadeUpMachine slow{.latency_seconds = 2e-3, .bucket_bytes = {1 << 20, 1 << 20, 1 << 20, 1 << 20, 1 << 10}};
  expect_message(plan_advice(planned(slow, {{64, 1}, 32, imagenet, 0, 1})), {"--bucket-mib 4"});
  const std::string keep = plan_advice(planned({.bytes_a_second = 1e9}, {{64, 1}, 32, imagenet, 0, 1}));
  expect_message(keep, {"buckets: ", "1 %"});
  EXPECT_THAT(keep, ::testing::Not(HasSubstr("--bucket-mib")));
}

TEST(Plan, what_a_study_cannot_tell_is_said) {
  expect_error(Failure::usage, {}, [] { model_of(made_up_study({.ranks = {1}})); });
  Study silent = made_up_study({});
  for (StudyPoint& point : silent.points) point.parts = {};
  expect_error(Failure::usage, {}, [&] { model_of(silent); });
  expect_error(Failure::usage, {"8 ranks", "--ranks", "2 nodes"}, [] { planned({}, {{8, 2}, 32, imagenet, 0, 1}); });
  expect_error(Failure::usage, {"255"}, [] { planned({}, {{8, 1}, 32, 255, 0, 1}); });
}

TEST(Plan, servers_have_no_samples) {
  const PlanRequest request{{8, 1}, 32, 50'000, 0, 1, {.servers = 2}};
  Study study = made_up_study({});
  add_servers(study, {}, 2);
  const TrainingPlan plan = plan_training(study, model_of(study), request);
  EXPECT_EQ(plan.request.global_batch(), 192);
  EXPECT_NEAR(plan.epoch.middle, 260 * plan.step.step.middle, 1e-9);  // 260.4 batches
  const double one_rank = made_up_point({}, 1, 32).step_seconds[0];
  EXPECT_NEAR(plan.efficiency, 0.75 * one_rank / plan.step.step.middle, 0.01);
  EXPECT_THAT(plans_table(std::vector{plan}), HasSubstr("\n    8      ps 2      1    192 "));
  expect_message(plan_advice(plan), {"--sync ps --servers 2", "--time=00:"});
  expect_error(Failure::usage, {"8 ranks", "8 servers"}, [] {
    planned({}, {{8, 1}, 32, 50'000, 0, 1, {.servers = 8}});
  });
}

TEST(Plan, only_measured_exchanges_are_planned) {
  expect_error(Failure::usage, {"--sync ps --servers 2", "one node", "--sweep-servers 2"}, [] {
    planned({}, {{8, 1}, 32, 50'000, 0, 1, {.servers = 2}});
  });
  expect_error(Failure::usage, {"--compress powersgd:4", "--sweep-compress powersgd:4"}, [] {
    planned({}, {{8, 1}, 32, 50'000, 0, 1, {.powersgd_rank = 4}});
  });
  Study study = made_up_study({});
  add_varied(study, {.exchange = {.powersgd_rank = 4}}, 1);
  const TrainingPlan plan = plan_training(study, model_of(study), {{8, 1}, 32, 50'000, 0, 1, {.powersgd_rank = 4}});
  EXPECT_THAT(plans_table(std::vector{plan}), HasSubstr("\n    8  powersgd:4 "));
  expect_message(plan_advice(plan), {"--compress powersgd:4"});
}

TEST(Plan, local_steps_are_planned_as_whole_steps) {
  const MadeUpMachine slow{.bytes_a_second = 1e8};
  const std::vector<TrainingPlan> plans = {planned(slow, {{8, 1}, 32, 50'000, 0, 1}),
                                           planned(slow, {{8, 1}, 32, 50'000, 0, 1, {16}})};
  EXPECT_GT(plans[1].efficiency, 2 * plans[0].efficiency);
  EXPECT_NEAR(plans[1].epoch.middle, 12 * 16 * plans[1].step.step.middle, 1e-9);  // 12.2 steps of 4,096 samples
  EXPECT_NEAR(plans[1].memory_bytes - plans[0].memory_bytes, 4.0 * 269'722, 1);
  EXPECT_EQ(plans[1].buckets.gain, 0);
  const std::string table = plans_table(plans);
  EXPECT_THAT(table, HasSubstr("ranks    exchange  nodes  batch  samples/s   update, ms"));
  EXPECT_THAT(table, HasSubstr("\n    8    local 16      1    256 "));
  expect_message(plan_advice(plans[1]), {"--sync local --local-steps 16", "--time=00:"});
  expect_error(Failure::usage, {"131072", "local steps"}, [] { planned({}, {{8, 1}, 32, 50'000, 0, 1, {512}}); });
}

TEST(Plan, a_training_stands_beside_its_prediction) {
  const Study study = made_up_study({});
  const double rate = 8 * 32 / made_up_point({}, 8, 32).step_seconds[0];
  const std::string message = prediction_of(model_of(study), {"runs/r20", {{8, 1}, 32}, rate / 1.1});
  expect_message(message, {"runs/r20: ", "8 ranks", "32 samples", "+10.0 %"});
  const StepSetting local{{8, 1}, 32, {}, {16}};
  expect_message(prediction_of(model_of(study), {"runs/r20", local, rate}), {"8 ranks", "--local-steps 16"});
  Study swept = study;
  add_servers(swept, {}, 2);
  const StepSetting servers{{8, 1}, 32, {}, {.servers = 2}};
  expect_message(prediction_of(model_of(swept), {"runs/r20", servers, rate}), {"6 trainers", "--servers 2"});
}

// "(2.1 to 128000000000.0)"
TEST(Plan, a_rate_without_an_upper_bound_has_none) {
  const Study study = made_up_study({.noise = 0.9});
  const StepModel model = model_of(study);
  const StepSetting setting{{8, 1}, 32};
  ASSERT_LE(model.predict(setting).step.low, 0);
  expect_message(prediction_of(model, {"runs/r20", setting, 100}), {" or more) samples/s"});
}

class PlanOfRun : public ::testing::Test {
 protected:
  void write(const std::string& fields) {
    std::ofstream(folder_.path() / "summary.json") << R"({"state": "done", "steps": 20, "epochs": 2)" << fields << "}";
    std::ofstream(folder_.path() / "metrics.jsonl") << "";
  }
  std::string refusal() {
    return message_of(Failure::usage, [&] { speed_of_run(made_up_study({}), folder_.path().string()); });
  }
  TemporaryFolder folder_;
};

TEST_F(PlanOfRun, its_speed_is_read_from_its_summary) {
  write(R"(, "model": "resnet20", "precision": "fp32", "ranks": 4, "global_batch": 128, "samples_per_second": 812.5,
         "hosts": {"n1": [0, 1], "n2": [2, 3]})");
  const RunSpeed run = speed_of_run(made_up_study({}), folder_.path().string());
  EXPECT_EQ(run.setting.grid.ranks, 4);
  EXPECT_EQ(run.setting.grid.nodes, 2);
  EXPECT_EQ(run.setting.batch_per_rank, 32);
  EXPECT_EQ(run.samples_per_second, 812.5);
}

TEST_F(PlanOfRun, its_exchange_is_read_from_its_options) {
  const auto with = [&](const std::string& recipe, const std::string& run = "{}") {
    write(R"(, "model": "resnet20", "precision": "fp32", "ranks": 4, "global_batch": 120, "samples_per_second": 812.5,
           "hosts": {"n1": [0, 1, 2, 3]}, "recipe": )" +
          recipe + R"(, "run": )" + run);
  };
  const auto setting = [&] { return speed_of_run(made_up_study({}), folder_.path().string()).setting; };
  with(R"({"sync": "local", "local-steps": 16})");
  EXPECT_EQ(setting().exchange, Exchange{.local_steps = 16});
  with(R"({"compress": "powersgd:4"})");
  EXPECT_EQ(setting().exchange, Exchange{.powersgd_rank = 4});
  with(R"({"sync": "ps"})", R"({"servers": 2})");
  EXPECT_EQ(setting().exchange, Exchange{.servers = 2});
  EXPECT_EQ(setting().batch_per_rank, 60);
  with(R"({"sync": "ps"})", R"({"servers": 4000000000})");
  EXPECT_EQ(setting().exchange, Exchange{.servers = 3});
  for (const char* const recipe :
       {"{}", "7", R"({"sync": "all-reduce", "local-steps": 16})", R"({"sync": "local", "local-steps": "x"})",
        R"({"compress": "none"})", R"({"compress": "powersgd:999"})", R"({"compress": 4})"}) {
    with(recipe);
    EXPECT_EQ(setting().exchange, Exchange()) << recipe;
  }
  for (const char* const recipe : {R"({"sync": "ps-async", "local-steps": 16})", R"({"sync": 7})",
                                   R"({"sync": "local", "compress": "powersgd:4"})"}) {
    with(recipe);
    expect_message(refusal(), {"--sync ps", "--compress"});
  }
}

// It was compared with a prediction for other images.
TEST_F(PlanOfRun, one_with_other_images_is_refused) {
  constexpr const char* speed =
      R"(, "model": "resnet20", "precision": "fp32", "ranks": 1, "global_batch": 32, "samples_per_second": 812.5,
         "hosts": {"n1": [0]}, "device": "cpu: another", "recipe": )";
  write(std::string(speed) + R"({"image-size": 48})");
  expect_message(refusal(), {"'" + folder_.path().string() + "'", "48 x 48", "32 x 32"});
  write(std::string(speed) + R"({"image-size": null})");
  const RunSpeed run = speed_of_run(made_up_study({}), folder_.path().string());
  ASSERT_EQ(warnings_of(made_up_study({}), run).size(), 1U);
  expect_message(warnings_of(made_up_study({}), run)[0], {"cpu: another", made_up_study({}).device});
  ModelFile model = small_checkpoint().model;
  model.shape = {28, 28, 3};
  write_model_file(folder_.path() / "model.h5", model);
  expect_message(refusal(), {"28 x 28", "32 x 32"});
}

// Its only rank has no sample.
TEST_F(PlanOfRun, one_with_trainers_of_their_own_is_refused) {
  write(R"(, "model": "resnet20", "precision": "fp32", "ranks": 1, "global_batch": 128, "samples_per_second": 812.5,
         "hosts": {"n1": [0]}, "recipe": {"sync": "ps"}, "run": {"servers": 1, "trainers": 2})");
  expect_message(refusal(), {"--trainers"});
}

TEST_F(PlanOfRun, one_of_something_else_is_refused) {
  const std::string name = "'" + folder_.path().string() + "'";
  write(R"(, "model": "resnet18", "precision": "fp32")");
  expect_message(refusal(), {name});
  write(R"(, "model": "resnet20", "precision": "bf16")");
  expect_message(refusal(), {name, "precision", "bf16", "fp32"});
  for (const char* const fields : {"", R"(, "samples_per_second": 0)", R"(, "samples_per_second": 10, "hosts": [])",
                                   R"(, "samples_per_second": 10, "hosts": {"n1": [0]}, "ranks": 1e300)",
                                   R"(, "samples_per_second": 10, "hosts": {"n1": [0]}, "ranks": 1.5)",
                                   R"(, "samples_per_second": 10, "hosts": {"n1": [0], "n2": [1]}, "ranks": 1)",
                                   R"(, "samples_per_second": "fast", "hosts": {"n1": [0]}, "ranks": 1)"}) {
    write(std::string(R"(, "model": "resnet20", "precision": "fp32", "global_batch": 32)") + fields);
    SCOPED_TRACE(fields);
    expect_message(refusal(), {name, "samples_per_second"});
  }
}

}  // namespace lockstep::plan_test
