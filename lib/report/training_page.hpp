// The page of one training, or of several beside each other.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "report/page/plot.hpp"
#include "report/run_record.hpp"

namespace lockstep {

// So many trainings can still be told apart.
inline constexpr std::size_t most_runs = 16;

// A curve of `field` over epochs. A line of kind `training` that is of less than half of the steps of the one before is
// added to that one: their mean by steps, at the end of both. Where points are more than `most_points`, one stands for
// several that follow one another: their mean by steps, with a band from the least to the most.
PlotSeries curve_of(std::span<const MetricsLine> lines, std::string_view field, std::size_t most_points = 250);

// Loss, accuracy, learning rate and throughput over epochs. One training has its curves of training, test and
// validation in one plot, with its interruptions; several have a plot for each kind.
std::vector<Plot> plots_of(std::span<const RunRecord> runs);

// What is not the same in all of `runs`, by its name: options, machine, versions. Where results lie is left out.
struct Difference {
  std::string name;
  std::vector<std::string> values;  // of each training
};
std::vector<Difference> differences_of(std::span<const RunRecord> runs);

// The page, but for what html_page() adds: results, curves, differences, interruptions, machine, command lines. `more`
// is html that follows the curves.
std::string training_html(std::span<const RunRecord> runs, std::string_view more);
std::string title_of(std::span<const RunRecord> runs);

}  // namespace lockstep
