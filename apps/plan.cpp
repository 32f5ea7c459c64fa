// Predicts a training on more ranks than a scaling study measured: time, memory, node-hours, and the Slurm options to
// request.
//
//   plan study --ranks 64,1024 --ranks-per-node 4 --samples 1281167 --epochs 90
//   plan study --run runs/r20                                            compares a training with its prediction
#include "scaling/plan.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/text/printable.hpp"
#include "dataset/shards/manifest.hpp"
#include "dataset/split.hpp"
#include "launch/exchange_options.hpp"
#include "launch/number_option.hpp"
#include "launch/run.hpp"
#include "scaling/study_file.hpp"

using namespace lockstep;

namespace {

struct PlanOptions {
  std::filesystem::path study;
  std::vector<int> ranks;
  std::optional<int> ranks_per_node;
  std::optional<std::int64_t> batch_per_rank;
  std::vector<Exchange> exchanges;
  std::filesystem::path data;
  std::optional<std::int64_t> samples;
  std::optional<std::int64_t> test_samples;
  std::int64_t epochs = 1;
  std::vector<std::string> runs;

  void declare(CLI::App& app) {
    app.description(
        "Predicts time, memory and node-hours of a training on more ranks than a scaling study measured, and the Slurm "
        "options to request. Predictions for several nodes need a study of several nodes.");
    app.footer(
        "Examples:\n  plan study --ranks 64,1024 --samples 1281167 --epochs 90\n"
        "  plan study --ranks 64 --local-steps 1,4,16 --servers 4 --samples 1281167\n"
        "  plan study --run runs/r20");
    constexpr NumberRange<std::int64_t> count{1, std::int64_t{1} << 40};
    constexpr int most = max_study_ranks;
    app.add_option("STUDY", study, "Output folder of scaling_study, or its study.json")->required()->type_name("FILE");
    CLI::Option* const ranks_option =
        add_numbers(app, "--ranks", ranks, {1, most}, "Rank counts to predict, such as 64,1024")
            ->type_name("COUNT")
            ->delimiter(',');
    add_number(app, "--ranks-per-node", ranks_per_node, {1, most},
               "Ranks per node (default: as in the study's largest point)")
        ->type_name("COUNT");
    add_number(app, "--batch-per-rank", batch_per_rank, {1, most},
               "Samples per rank and step (default: as in the study's weak scaling)")
        ->type_name("SAMPLES");
    add_exchanges(app, "--", exchanges, " to predict");
    add_number(app, "--samples", samples, count, "Training samples per epoch (default: from --data)")
        ->type_name("COUNT");
    add_number(app, "--test-samples", test_samples, count,
               "Test samples per epoch (default: from --data, else no test)")
        ->type_name("COUNT");
    app.add_option("--data", data, "Folder made by make_shards, for the numbers of samples")->type_name("FOLDER");
    add_number(app, "--epochs", epochs, {1, std::int64_t{1} << 30}, "Epochs of the training")->type_name("COUNT");
    for (const char* of_plan : {"--ranks-per-node", "--batch-per-rank", "--local-steps", "--servers", "--compress",
                                "--samples", "--test-samples", "--data", "--epochs"}) {
      app.get_option(of_plan)->needs(ranks_option);
    }
    app.add_option("--run", runs, "Output folders of finished trainings to compare with their predictions")
        ->type_name("FOLDER");
  }
};

Study open_study(const PlanOptions& options) {
  const bool is_folder = std::filesystem::is_directory(options.study);
  return read_study(is_folder ? options.study / study_file : options.study);
}

std::vector<TrainingPlan> plans_of(const Study& study, const StepModel& model, const PlanOptions& options) {
  require(options.samples || !options.data.empty() || options.ranks.empty(), Failure::usage,
          "the length of an epoch is unknown, because neither --samples nor --data is set. Set one of them.");
  const auto largest = std::ranges::max(study.points, {}, [](const StudyPoint& point) { return point.grid.ranks; });
  const int on_a_node = options.ranks_per_node.value_or(largest.grid.ranks_per_node());
  PlanRequest request;
  request.batch_per_rank = options.batch_per_rank.value_or(study.weak_batch);
  request.epochs = options.epochs;
  if (!options.data.empty()) {
    request.samples = read_manifest(split_folder(options.data, Split::train)).samples();
    request.test_samples = read_manifest(split_folder(options.data, Split::test)).samples();
  }
  request.samples = options.samples.value_or(request.samples);
  request.test_samples = options.test_samples.value_or(request.test_samples);
  std::vector<TrainingPlan> plans;
  for (const int ranks : options.ranks) {
    request.grid = {ranks, (ranks + on_a_node - 1) / on_a_node};
    for (const Exchange& exchange : options.exchanges.empty() ? std::vector{Exchange()} : options.exchanges) {
      request.exchange = exchange;
      plans.push_back(plan_training(study, model, request));
    }
  }
  return plans;
}

void print_warnings(const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) log::plain(printable("warning: " + warning));
}

void plan(const PlanOptions& options) {
  require(
      !options.ranks.empty() || !options.runs.empty(), Failure::usage,
      "there is nothing to plan, because neither --ranks nor --run is set. Set rank counts, such as --ranks 64,1024.");
  const Study study = open_study(options);
  const StepModel model = model_of(study);
  const std::vector<TrainingPlan> plans = plans_of(study, model, options);
  std::vector<RunSpeed> runs;
  std::vector<std::string> compared;
  for (const std::string& run : options.runs) {
    runs.push_back(speed_of_run(study, run));
    compared.push_back(prediction_of(model, runs.back()));
  }
  log::plain(printable(fmt::format("{}, {} x {} pixels, {}, from a study of 1 to {} ranks on {}", study.model,
                                   study.image_height, study.image_width, study.setup.precision, model.max_ranks,
                                   study.device)));
  if (!plans.empty()) {
    log::plain(plans_table(plans));
    log::plain(fmt::format("\nfor {} ranks:", plans.back().request.grid.ranks));
    print_warnings(warnings_of(study, plans.back()));
    log::plain(plan_advice(plans.back()));
  }
  if (plans.empty()) print_warnings(warnings_of(study));
  for (const RunSpeed& run : runs) print_warnings(warnings_of(study, run));
  for (const std::string& message : compared) log::plain(printable(message));
}

}  // namespace

int main(int argc, char** argv) {
  return run<PlanOptions>(argc, argv, [](Session& session, const PlanOptions& options) {
    if (session.world.rank() == 0) plan(options);
  });
}
