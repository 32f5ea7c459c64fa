#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "report/training_page.hpp"

namespace lockstep {
namespace {

struct Curve {
  std::optional<double> MetricsLine::*field;
  double factor = 1;
};

PlotSeries scaled(PlotSeries series, double factor) {
  for (PlotPoint& point : series.points) point.y *= factor;
  for (PlotBand& spread : series.spread) spread = {spread.low * factor, spread.high * factor};
  return series;
}

// Adds the curve if it has a point.
void add(Plot& plot, const RunRecord& run, std::vector<MetricsLine> RunRecord::*lines, const Curve& curve,
         const std::string& name, int color, PlotSeries::Shape shape) {
  PlotSeries series = scaled(curve_of(run.*lines, curve.field, run.steps_per_epoch), curve.factor);
  if (series.points.empty()) return;
  series.name = name;
  series.color = color;
  series.shape = shape;
  plot.series.push_back(std::move(series));
}

constexpr auto line = PlotSeries::Shape::line;
constexpr auto dotted_line = PlotSeries::Shape::dotted_line;
constexpr Curve loss{&MetricsLine::loss};
constexpr Curve accuracy{&MetricsLine::accuracy, 100};
constexpr Curve ema_loss{&MetricsLine::ema_loss};
constexpr Curve ema_accuracy{&MetricsLine::ema_accuracy, 100};
constexpr Curve learning_rate{&MetricsLine::learning_rate};
constexpr Curve throughput{&MetricsLine::samples_per_second};

Plot plot_named(const char* title, const char* unit = "", std::optional<double> least = {}) {
  return {title, {"epochs", "", 0.0, {}}, {title, unit, least, {}}, {}, {}};
}

// Of asynchronous updates: the share of gradients of each age.
Plot plot_of_ages() {
  return {
      "Age of applied gradients, share of all", {"updates by others", "", {}, {}, 1}, {"share", " %", 0.0, {}}, {}, {}};
}

void add_ages(Plot& plot, const RunRecord& run, const std::string& name, int color) {
  const nlohmann::json counts = run.summary.fields.value("applied_by_age", nlohmann::json());
  if (!counts.is_array() || !std::ranges::all_of(counts, [](const auto& count) { return count.is_number(); })) return;
  double sum = 0;
  for (const nlohmann::json& count : counts) sum += count.get<double>();
  if (!(sum > 0)) return;
  PlotSeries series{name, color, PlotSeries::Shape::bars, {}, {}};
  for (std::size_t age = 0; age < counts.size(); ++age) {
    series.points.push_back({static_cast<double>(age), 100 * counts[age].get<double>() / sum});
  }
  plot.series.push_back(std::move(series));
}

std::vector<Plot> plots_of_one(const RunRecord& run) {
  Plot losses = plot_named("Loss");
  add(losses, run, &RunRecord::training, loss, "training", 0, line);
  add(losses, run, &RunRecord::tests, loss, "test", 1, dotted_line);
  add(losses, run, &RunRecord::validations, loss, "validation", 2, dotted_line);
  add(losses, run, &RunRecord::tests, ema_loss, "test, EMA", 3, dotted_line);
  Plot accuracies = plot_named("Accuracy (top-1)", " %");
  add(accuracies, run, &RunRecord::training, accuracy, "training", 0, line);
  add(accuracies, run, &RunRecord::tests, accuracy, "test", 1, dotted_line);
  add(accuracies, run, &RunRecord::validations, accuracy, "validation", 2, dotted_line);
  add(accuracies, run, &RunRecord::tests, ema_accuracy, "test, EMA", 3, dotted_line);
  Plot rates = plot_named("Learning rate", "", 0.0);
  add(rates, run, &RunRecord::training, learning_rate, "learning rate", 0, line);
  Plot speeds = plot_named("Throughput, samples per second", "", 0.0);
  add(speeds, run, &RunRecord::training, throughput, "samples per second", 0, line);
  std::vector<Plot> plots{losses, accuracies, rates, speeds};
  for (Plot& plot : plots) {
    for (const Interruption& pause : run.summary.interruptions) {
      plot.marks.push_back({static_cast<double>(pause.step) / run.steps_per_epoch,
                            fmt::format("{}; resumed from step {}", describe_end(pause), pause.step), 4});
    }
  }
  Plot ages = plot_of_ages();
  add_ages(ages, run, "gradients", 0);
  if (!ages.series.empty()) plots.push_back(std::move(ages));
  return plots;
}

std::vector<Plot> plots_of_several(std::span<const RunRecord> runs) {
  Plot training_losses = plot_named("Training loss");
  Plot test_losses = plot_named("Test loss");
  Plot accuracies = plot_named("Test accuracy (top-1)", " %");
  Plot means = plot_named("Test accuracy of the EMA", " %");
  Plot validation_accuracies = plot_named("Validation accuracy", " %");
  Plot rates = plot_named("Learning rate", "", 0.0);
  Plot speeds = plot_named("Throughput, samples per second", "", 0.0);
  Plot ages = plot_of_ages();
  for (int i = 0; i < std::ssize(runs); ++i) {
    const RunRecord& run = runs[static_cast<std::size_t>(i)];
    add(training_losses, run, &RunRecord::training, loss, run.name, i, line);
    add(test_losses, run, &RunRecord::tests, loss, run.name, i, dotted_line);
    add(accuracies, run, &RunRecord::tests, accuracy, run.name, i, dotted_line);
    add(means, run, &RunRecord::tests, ema_accuracy, run.name, i, dotted_line);
    add(validation_accuracies, run, &RunRecord::validations, accuracy, run.name, i, dotted_line);
    add(rates, run, &RunRecord::training, learning_rate, run.name, i, line);
    add(speeds, run, &RunRecord::training, throughput, run.name, i, line);
    add_ages(ages, run, run.name, i);
  }
  std::vector<Plot> plots{training_losses, test_losses, accuracies};
  if (!means.series.empty()) plots.push_back(means);
  if (!validation_accuracies.series.empty()) plots.push_back(validation_accuracies);
  plots.push_back(rates);
  plots.push_back(speeds);
  if (!ages.series.empty()) plots.push_back(ages);
  return plots;
}

// A plot for each metric. Of several points that would be too dense, the last one stays.
std::vector<Plot> plots_of_own_metrics(std::span<const RunRecord> runs) {
  constexpr std::size_t most_points = 250;
  std::map<std::string, Plot> plots;
  const auto add = [&](const std::string& metric, const std::vector<PlotPoint>& points, const std::string& name,
                       int color, PlotSeries::Shape shape) {
    if (points.empty()) return;
    const auto plot =
        plots.try_emplace(metric, Plot{metric, {"steps", "", 0.0, {}}, {metric, "", {}, {}}, {}, {}}).first;
    PlotSeries series{name, color, shape, {}, {}};
    const std::size_t each = (points.size() + most_points - 1) / most_points;
    for (std::size_t i = each - 1; i < points.size(); i += each) series.points.push_back(points[i]);
    if ((points.size() % each) != 0) series.points.push_back(points.back());
    plot->second.series.push_back(std::move(series));
  };
  for (int i = 0; i < std::ssize(runs); ++i) {
    const RunRecord& run = runs[static_cast<std::size_t>(i)];
    for (const auto& [name, metric] : run.own_metrics) {
      add(name, metric.training, runs.size() == 1 ? "training" : run.name + ", training", 2 * i, line);
      add(name, metric.validation, runs.size() == 1 ? "validation" : run.name, 2 * i + 1, dotted_line);
    }
  }
  std::vector<Plot> list;
  for (auto& [name, plot] : plots) list.push_back(std::move(plot));
  return list;
}

// Consecutive steps, and the mean of a field over them.
struct Stretch {
  double epochs;  // completed at their end
  double steps;
  double mean;

  // Appends the steps that follow.
  void add(const Stretch& next) {
    mean = (mean * steps + next.mean * next.steps) / (steps + next.steps);
    steps += next.steps;
    epochs = next.epochs;
  }
};

// A line for a few steps at the end of an epoch is noisy. It is merged into the previous line.
std::vector<Stretch> stretches_of(std::span<const MetricsLine> lines, std::optional<double> MetricsLine::*field,
                                  double steps_per_epoch) {
  constexpr double own_share = 0.5;  // of the previous line's steps
  std::vector<Stretch> stretches;
  std::int64_t before = 0;
  for (const MetricsLine& report : lines) {
    const bool is_stretch = report.kind == MetricsLine::Kind::training;
    const std::int64_t steps =
        is_stretch ? std::max<std::int64_t>(report.step - std::exchange(before, report.step), 1) : 1;
    const std::optional<double> number = report.*field;
    if (!number) continue;
    const Stretch stretch{static_cast<double>(report.step) / steps_per_epoch, static_cast<double>(steps), *number};
    if (!stretches.empty() && stretch.steps < own_share * stretches.back().steps)
      stretches.back().add(stretch);
    else
      stretches.push_back(stretch);
  }
  return stretches;
}

}  // namespace

PlotSeries curve_of(std::span<const MetricsLine> lines, std::optional<double> MetricsLine::*field,
                    double steps_per_epoch, std::size_t max_points) {
  const std::vector<Stretch> stretches = stretches_of(lines, field, steps_per_epoch);
  PlotSeries series;
  const std::size_t each = (stretches.size() + max_points - 1) / max_points;
  for (std::size_t first = 0; first < stretches.size(); first += each) {
    const std::span<const Stretch> part = std::span(stretches).subspan(first, std::min(each, stretches.size() - first));
    Stretch sum = part[0];
    PlotBand spread{sum.mean, sum.mean};
    double epochs = 0;
    for (const Stretch& stretch : part) {
      if (&stretch != part.data()) sum.add(stretch);
      epochs += stretch.epochs;
      spread = {std::min(spread.low, stretch.mean), std::max(spread.high, stretch.mean)};
    }
    series.points.push_back({epochs / static_cast<double>(part.size()), sum.mean});
    if (each > 1) series.spread.push_back(spread);
  }
  return series;
}

std::vector<Plot> plots_of(std::span<const RunRecord> runs) {
  std::vector<Plot> own_plots = plots_of_own_metrics(runs);
  if (std::ranges::none_of(runs, [](const RunRecord& run) { return run.own_metrics.empty(); })) return own_plots;
  // Runs with metrics of their own add no curve to these.
  std::vector<Plot> plots = runs.size() == 1 ? plots_of_one(runs[0]) : plots_of_several(runs);
  std::ranges::move(own_plots, std::back_inserter(plots));
  return plots;
}

}  // namespace lockstep
