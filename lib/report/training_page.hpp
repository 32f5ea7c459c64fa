// The page of one training, or of several compared with each other.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "report/page/plot.hpp"
#include "report/run_record.hpp"

namespace lockstep {

// More trainings could not be told apart.
inline constexpr std::size_t max_runs = 16;

// A curve of `field` over epochs, of lines of one kind. A line of kind `training` is for the steps since the previous
// one. A short one, with less than half of the steps of the previous one, is merged into that one: their mean weighted
// by steps, at the end of both. If there are more than `max_points`, several consecutive points become one: their mean
// weighted by steps, with a band from minimum to maximum.
PlotSeries curve_of(std::span<const MetricsLine> lines, std::optional<double> MetricsLine::*field,
                    double steps_per_epoch, std::size_t max_points = 250);

// Loss, accuracy, learning rate and throughput over epochs. For one training, its training, test and validation curves
// share one plot, with its earlier attempts. For several trainings, each kind has a plot of its own. Then, for training
// loops of their own, a plot of each metric over steps.
std::vector<Plot> plots_of(std::span<const RunRecord> runs);

// Options, machine facts and versions that differ between `runs`, by name. Excludes the paths of results.
struct Difference {
  std::string name;
  std::vector<std::string> values;  // one per training
};
std::vector<Difference> differences_of(std::span<const RunRecord> runs);

// The content for html_page(): results, curves, differences, networks, earlier attempts, machine, command
// lines. `more` is HTML that follows the curves.
std::string training_html(std::span<const RunRecord> runs, std::string_view more);
std::string title_of(std::span<const RunRecord> runs);

}  // namespace lockstep
