#include "scaling/plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/text/counted.hpp"
#include "base/text/text_table.hpp"
#include "network/graph.hpp"
#include "picture/picture.hpp"
#include "recipe/field_forms.hpp"
#include "report/run_record.hpp"
#include "run/run_file.hpp"
#include "scaling/findings.hpp"

namespace lockstep {
namespace {

constexpr double seconds_an_hour = 3600;
constexpr double checkpoint_bytes_a_second = 1e8;
constexpr double arrays_of_checkpoint = 2;  // weights, and one array of the optimizer
constexpr std::int64_t least_notice_seconds = 30;

Interval plus(const Interval& interval, double seconds) {
  return {interval.middle + seconds, interval.low + seconds, interval.high + seconds};
}

// The middle of an interval if it has no bounds.
double upper_end(const Interval& interval) { return interval.is_bounded() ? interval.high : interval.middle; }

// Memory is linear in a rank's samples.
double memory_of(const Study& study, std::int64_t batch_per_rank) {
  std::vector<Observation> observations;
  for (const StudyPoint& point : study.points) {
    if (!is_default_point(study, point)) continue;
    const auto bytes = static_cast<double>(std::max<std::int64_t>(point.memory_bytes, 1));
    observations.push_back({{1, static_cast<double>(point.batch_per_rank)}, bytes, bytes});
  }
  return fit_non_negative(observations).at({1, static_cast<double>(batch_per_rank)});
}

// All ranks share the samples of a test, which needs the forward pass only.
double test_seconds(const StepModel& model, const PlanRequest& request, const StepPrediction& step) {
  const double a_sample = step.computing * (1 - model.backward_share) / static_cast<double>(request.batch_per_rank);
  return a_sample * std::ceil(static_cast<double>(request.test_samples) / request.grid.ranks);
}

// "12.3 (11.9 to 12.7)", "12.3 (11.9 or more)", or only "12.3" if the bounds are unknown.
std::string with_bounds(const Interval& interval, int decimals) {
  if (std::isinf(interval.high) && interval.low > 0) {
    return fmt::format("{:.{}f} ({:.{}f} or more)", interval.middle, decimals, interval.low, decimals);
  }
  if (!interval.is_bounded()) return fmt::format("{:.{}f}", interval.middle, decimals);
  return fmt::format("{:.{}f} ({:.{}f} to {:.{}f})", interval.middle, decimals, interval.low, decimals, interval.high,
                     decimals);
}

// A noisy study may not exclude a step of no time.
Interval rate_of(double samples, const Interval& step) {
  const double infinite = std::numeric_limits<double>::infinity();
  return {samples / step.middle, samples / step.high, step.low > 0 ? samples / step.low : infinite};
}

void require_measured(const StepModel& model, const RankGrid& grid, const Exchange& exchange) {
  require(exchange.powersgd_rank == 0 || model.find_compressed(exchange.powersgd_rank) != nullptr, Failure::usage,
          "cannot predict {}, because the study did not measure it. Repeat the study with --sweep-compress {}.",
          options_of(exchange), name_of(exchange));
  require(exchange.servers == 0 || model.find_servers(grid, exchange.servers) != nullptr, Failure::usage,
          "cannot predict {}, because the study did not measure it on {}. Repeat the study there with --sweep-servers "
          "{}.",
          options_of(exchange), grid.nodes == 1 ? "one node" : "several nodes", exchange.servers);
}

std::string consequence_of(const Exchange& exchange) {
  if (exchange.local_steps > 1) return "fewer exchanges, and other weights than with all-reduce";
  if (exchange.servers > 0) return "servers update the weights, and have no samples";
  return "approximate gradients, so other weights than without it";
}

}  // namespace

StepModel model_of(const Study& study) {
  const auto most = std::ranges::max(study.points, {}, [](const StudyPoint& point) { return point.grid.ranks; });
  require(most.grid.ranks > 1, Failure::usage,
          "cannot predict from this study: it measured only one rank, which needs no all-reduce. Repeat the study with "
          "2 or more ranks.");
  const std::optional<StepModel> model = fit_steps(study, most.grid.ranks);
  require(
      model.has_value(), Failure::usage,
      "cannot predict from this study: its device ({}) does not report the parts of a step. Repeat the study on CPUs.",
      study.device);
  return *model;
}

TrainingPlan plan_training(const Study& study, const StepModel& model, const PlanRequest& request) {
  require(model.covers(request.grid), Failure::usage,
          "cannot predict {0} ranks on {1} nodes: the study ran on one node, and did not measure all-reduces between "
          "nodes. Leave {0} out of --ranks, or repeat the study on 2 or more nodes. If all ranks share a node, set "
          "--ranks-per-node {0}.",
          request.grid.ranks, request.grid.nodes);
  const Exchange& exchange = request.exchange;
  require_trainers(exchange, request.grid.ranks);
  require_measured(model, request.grid, exchange);
  const std::int64_t step_samples = request.global_batch() * exchange.local_steps;
  const std::int64_t updates = request.samples / step_samples * exchange.local_steps;
  require(updates >= 1, Failure::usage,
          "an epoch of {} samples is shorter than a step: {} ranks with {} samples each need {}. Plan fewer ranks, {}.",
          request.samples, request.grid.ranks - exchange.servers, request.batch_per_rank * exchange.local_steps,
          step_samples, exchange.local_steps > 1 ? "smaller batches, or fewer local steps" : "or smaller batches");
  TrainingPlan plan;
  plan.request = request;
  const StepSetting setting{request.grid, request.batch_per_rank, {}, exchange};
  plan.step = model.predict(setting);
  const double one_rank = model.predict({{1, 1}, request.batch_per_rank}).step.middle;
  const double trainers = static_cast<double>(request.grid.ranks - exchange.servers) / request.grid.ranks;
  plan.efficiency = trainers * one_rank / plan.step.step.middle;
  plan.epoch = plus(plan.step.step * static_cast<double>(updates), test_seconds(model, request, plan.step));
  plan.training = plan.epoch * static_cast<double>(request.epochs);
  plan.node_hours = plan.training.middle * request.grid.nodes / seconds_an_hour;
  plan.memory_bytes = memory_of(study, request.batch_per_rank);
  if (exchange.local_steps > 1)
    plan.memory_bytes += sizeof(float) * static_cast<double>(study.parameters);  // common weights
  plan.checkpoint_bytes = arrays_of_checkpoint * sizeof(float) * static_cast<double>(study.parameters);
  if (request.grid.ranks > 1 && is_all_reduce(exchange)) plan.buckets = advise_bucket(model, setting);
  constexpr double margin = 1.1;
  plan.time_limit_minutes = static_cast<std::int64_t>(std::ceil(margin * upper_end(plan.training) / 60)) + 5;
  const double notice = 2 * static_cast<double>(exchange.local_steps) * upper_end(plan.step.step) +
                        plan.checkpoint_bytes / checkpoint_bytes_a_second;
  plan.notice_seconds = std::max(least_notice_seconds, static_cast<std::int64_t>(std::ceil(notice / 10)) * 10);
  return plan;
}

std::string plans_table(std::span<const TrainingPlan> plans) {
  const auto exchange_of = [](const TrainingPlan& plan) { return plan.request.exchange; };
  const bool has_local_steps = std::ranges::any_of(
      plans, [](const Exchange& exchange) { return exchange.local_steps > 1; }, exchange_of);
  std::vector<TextColumn> speed = {{"ranks"},        {"exchange"},  {"nodes"},
                                   {"batch"},        {"samples/s"}, {has_local_steps ? "update, ms" : "step, ms"},
                                   {"efficiency, %"}};
  std::vector<TextColumn> cost = {{"ranks"}, {"exchange"}, {"epoch"}, {"training"}, {"node-hours"}, {"memory, MB"}};
  for (const TrainingPlan& plan : plans) {
    const RankGrid& grid = plan.request.grid;
    const auto batch = static_cast<double>(plan.request.global_batch());
    const std::string ranks = fmt::format("{}", grid.ranks);
    const std::string exchange = name_of(plan.request.exchange);
    add_row(speed, {ranks, exchange, fmt::format("{}", grid.nodes), fmt::format("{}", plan.request.global_batch()),
                    fmt::format("{:.0f}", rate_of(batch, plan.step.step).middle), text_of(plan.step.step * 1e3, 1),
                    fmt::format("{:.1f}", 100 * plan.efficiency)});
    add_row(cost, {ranks, exchange, format_duration(plan.epoch.middle), format_duration(plan.training.middle),
                   fmt::format("{:.1f}", plan.node_hours), fmt::format("{:.0f}", 1e-6 * plan.memory_bytes)});
  }
  std::vector<std::string> lines;
  for (std::vector<TextColumn>* const columns : {&speed, &cost}) {
    if (std::ranges::all_of(plans, is_all_reduce, exchange_of)) columns->erase(columns->begin() + 1);
    if (!lines.empty()) lines.emplace_back();
    std::ranges::move(text_table(*columns, terminal_width), std::back_inserter(lines));
  }
  return fmt::format("{}", fmt::join(lines, "\n"));
}

std::vector<std::string> warnings_of(const Study& study) {
  std::vector<std::string> warnings;
  for (const ScalingFinding& finding : judge(study)) {
    if (finding.cause == LossCause::too_noisy)
      warnings.push_back(fmt::format("the study reports: {}", finding.sentence));
  }
  return warnings;
}

std::vector<std::string> warnings_of(const Study& study, const TrainingPlan& plan) {
  std::vector<std::string> warnings = warnings_of(study);
  RankGrid most{1, 1};
  std::int64_t largest_batch = 1;
  for (const StudyPoint& point : study.points) {
    most = {std::max(most.ranks, point.grid.ranks), std::max(most.nodes, point.grid.nodes)};
    largest_batch = std::max(largest_batch, point.batch_per_rank);
  }
  const RankGrid& grid = plan.request.grid;
  const auto add_beyond = [&](std::int64_t planned, std::int64_t measured, std::string_view of) {
    if (planned <= measured) return;
    warnings.push_back(fmt::format("the study measured up to {} {}. {} are extrapolated.", measured, of, planned));
  };
  add_beyond(grid.ranks, most.ranks, "ranks");
  add_beyond(grid.nodes, most.nodes, "nodes");
  add_beyond(plan.request.batch_per_rank, largest_batch, "samples per rank");
  if (study.device.starts_with("cpu") && grid.ranks_per_node() * study.setup.threads > study.cores) {
    warnings.push_back(fmt::format(
        "a node has {} with {} each, but the nodes of the study had {}. The prediction ignores that ranks share cores.",
        counted(grid.ranks_per_node(), "rank"), counted(study.setup.threads, "thread"), counted(study.cores, "core")));
  }
  return warnings;
}

std::string plan_advice(const TrainingPlan& plan) {
  const RankGrid& grid = plan.request.grid;
  constexpr double least_gain = 0.01;
  const Exchange& exchange = plan.request.exchange;
  std::string text =
      !is_all_reduce(exchange) ? fmt::format("{}: {}.\n", options_of(exchange), consequence_of(exchange))
      : plan.buckets.gain < least_gain
          ? fmt::format(
                "buckets: keep the size of the study. No other size is predicted to shorten a step by {:.0f} %.\n",
                100 * least_gain)
          : fmt::format("buckets: --bucket-mib {}, which is predicted to shorten a step by {:.1f} %.\n",
                        plan.buckets.bytes >> 20, 100 * plan.buckets.gain);
  const bool is_even = grid.nodes * grid.ranks_per_node() == grid.ranks;
  text += fmt::format(
      "sbatch --nodes={}{} --ntasks-per-node={} --time={}: the upper bound of the prediction ({}), plus 10 % and 5 "
      "minutes.\n",
      grid.nodes, is_even ? "" : fmt::format(" --ntasks={}", grid.ranks), grid.ranks_per_node(),
      slurm_time(plan.time_limit_minutes), format_duration(upper_end(plan.training)));
  text += fmt::format(
      "--signal=B:USR1@{} in your own script: time for two steps, and for a checkpoint of {:.1f} MB at 100 MB/s. The "
      "installed scripts stop in time without it.",
      plan.notice_seconds, 1e-6 * plan.checkpoint_bytes);
  return text;
}

std::string slurm_time(std::int64_t minutes) {
  const std::int64_t days = minutes / (24 * 60);
  const std::string time = fmt::format("{:02}:{:02}:00", minutes / 60 % 24, minutes % 60);
  return days > 0 ? fmt::format("{}-{}", days, time) : time;
}

std::string prediction_of(const StepModel& model, const RunSpeed& run) {
  const RankGrid& grid = run.setting.grid;
  require(model.covers(grid), Failure::usage,
          "cannot predict '{}', which ran on {} nodes: the study ran on one node, and did not measure all-reduces "
          "between nodes. Repeat the study on 2 or more nodes.",
          run.name, grid.nodes);
  const Exchange& exchange = run.setting.exchange;
  require_measured(model, grid, exchange);
  const std::int64_t trainers = grid.ranks - exchange.servers;
  const Interval rate =
      rate_of(static_cast<double>(trainers * run.setting.batch_per_rank), model.predict(run.setting).step);
  return fmt::format(
      "{}: {} samples/s predicted on {} with {} samples each{}. Measured: {:.1f} samples/s. The prediction is off by "
      "{:+.1f} %.",
      run.name, with_bounds(rate, 1), counted(trainers, exchange.servers > 0 ? "trainer" : "rank"),
      run.setting.batch_per_rank, is_all_reduce(exchange) ? "" : ", " + options_of(exchange), run.samples_per_second,
      100 * (rate.middle / run.samples_per_second - 1));
}

namespace {

// Of a finished training, whose options are untrusted. `servers` are at most `ranks` - 1.
Exchange exchange_of(const Summary& summary, std::int64_t ranks, const std::string& folder) {
  const auto option = [&](const char* object, const char* name, const nlohmann::json& usual) {
    const nlohmann::json options = summary.fields.value(object, nlohmann::json::object());
    return options.is_object() ? options.value(name, usual) : usual;
  };
  const auto count = [&](const char* object, const char* name, std::int64_t most) {
    const nlohmann::json value = option(object, name, 1);
    return value.is_number_integer() ? std::clamp<std::int64_t>(value.get<std::int64_t>(), 1, most) : 1;
  };
  const nlohmann::json sync = option("recipe", "sync", "all-reduce");
  const nlohmann::json compression = option("recipe", "compress", "none");
  const nlohmann::json trainers = option("run", "trainers", 0);
  const bool has_programs = trainers.is_number() && trainers != 0;
  const bool is_measured =
      sync == "all-reduce" || ((sync == "local" || sync == "ps") && compression == "none" && !has_programs);
  require(
      is_measured, Failure::usage,
      "'{}' exchanged gradients in a way that studies do not measure. Compare trainings with --sync local, --compress, "
      "or --sync ps without --trainers, or with none of them.",
      folder);
  if (sync == "local") return {.local_steps = count("recipe", "local-steps", 65536)};
  if (sync == "ps" && ranks > 1) return {.servers = count("run", "servers", ranks - 1)};
  const std::string method = compression.is_string() ? compression.get<std::string>() : std::string();
  return {.powersgd_rank = CompressionForm::validation_error(method).empty() ? CompressionForm::parse(method) : 0};
}

// Of training, if it is known. The model file has that of evaluation.
std::optional<PictureSize> image_size_of_run(const Summary& summary, const std::string& folder) {
  const nlohmann::json recipe = summary.fields.value("recipe", nlohmann::json());
  if (const std::optional<std::int64_t> side = count_in(recipe, "image-size")) return PictureSize{*side, *side};
  if (count_in(recipe, "test-image-size")) return std::nullopt;
  const std::optional<NetworkGraph> network = network_of_run(folder);
  if (!network) return std::nullopt;
  const ValueShape& image = network->nodes().front().shape;
  return PictureSize{image.height, image.width};
}

}  // namespace

std::vector<std::string> warnings_of(const Study& study, const RunSpeed& run) {
  if (run.device.empty() || run.device == study.device) return {};
  return {fmt::format("'{}' trained on '{}', but the study measured '{}'. Their speeds may differ.", run.name,
                      run.device, study.device)};
}

RunSpeed speed_of_run(const Study& study, const std::string& folder) {
  const RunRecord run = read_run(folder);
  const Summary& summary = run.summary;
  for (const auto& [field, its, own] : {std::tuple("model", summary.model, study.model),
                                        std::tuple("precision", summary.precision, study.setup.precision)}) {
    require(its == own, Failure::usage,
            "'{}' trained with {} '{}', but the study measured '{}'. Compare it with a matching study.", folder, field,
            its, own);
  }
  if (const std::optional<PictureSize> image = image_size_of_run(summary, folder)) {
    require(image->height == study.image_height && image->width == study.image_width, Failure::usage,
            "'{}' trained with images of {} x {} pixels, but the study measured {} x {}. Compare it with a matching "
            "study.",
            folder, image->height, image->width, study.image_height, study.image_width);
  }
  const std::int64_t ranks = summary.ranks.value_or(0);
  const std::int64_t batch = summary.global_batch.value_or(0);
  const double rate = summary.samples_per_second.value_or(0);
  const std::int64_t nodes = summary.nodes.value_or(0);
  const bool has_speed =
      ranks >= 1 && ranks <= max_study_ranks && batch >= ranks && rate > 0 && nodes >= 1 && nodes <= ranks;
  require(has_speed, Failure::usage,
          "'{}' has no throughput yet (samples_per_second in its summary.json). Wait for its first test.", folder);
  const Exchange exchange = exchange_of(summary, ranks, folder);
  const std::int64_t batch_per_rank = std::max<std::int64_t>(batch / (ranks - exchange.servers), 1);
  return {
      folder, {{static_cast<int>(ranks), static_cast<int>(nodes)}, batch_per_rank, {}, exchange}, rate, summary.device};
}

}  // namespace lockstep
