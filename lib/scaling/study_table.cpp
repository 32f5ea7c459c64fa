#include "scaling/study_table.hpp"

#include <fmt/format.h>

#include "base/text/printable.hpp"
#include "scaling/findings.hpp"

namespace lockstep {
namespace {

std::string with_error(const Interval& interval, int decimals) {
  if (!interval.is_bounded()) return fmt::format("{:.{}f}", interval.middle, decimals);
  return fmt::format("{:.{}f} ± {:.{}f}", interval.middle, decimals, interval.half_width(), decimals);
}

Interval in_percent(const Interval& share) { return {100 * share.middle, 100 * share.low, 100 * share.high}; }

// The character ± has two bytes but occupies one column.
std::string cell(const std::string& text, std::size_t width) {
  const std::size_t columns = text.size() - (text.find("±") == std::string::npos ? 0 : 1);
  return std::string(columns < width ? width - columns : 0, ' ') + text;
}

std::string row_of(const StudyPoint& point, const StudyPoint& base) {
  constexpr double milliseconds = 1e3;
  std::string row = fmt::format("{:>5}  {:>5}  {:>5}", point.grid.ranks, point.grid.nodes, point.batch_per_rank);
  row += "  " + cell(with_error(throughput_of(point), 1), 16);
  row += "  " + cell(with_error(in_percent(efficiency_of(point, base)), 1), 13);
  row += fmt::format("  {:>8.2f}", milliseconds * median_interval(point.step_seconds).middle);
  for (std::size_t part = 0; part < step_part_count; ++part) {
    row += point.has_parts() ? fmt::format("  {:>9.2f}", milliseconds * point.part(static_cast<StepPart>(part)))
                             : fmt::format("  {:>9}", "?");
  }
  return row + '\n';
}

std::string heading(const Study& study, Scaling scaling) {
  std::string text =
      scaling == Scaling::weak
          ? fmt::format("weak scaling, {} samples per rank; parts of a step in ms\n", study.weak_batch)
          : fmt::format("strong scaling, {} samples per step; parts of a step in ms\n", study.strong_batch);
  text += fmt::format("{:>5}  {:>5}  {:>5}  {:>16}  {:>13}  {:>8}", "ranks", "nodes", "batch", "samples/s",
                      "efficiency, %", "step");
  for (std::size_t part = 0; part < step_part_count; ++part) {
    text += fmt::format("  {:>9}", name_of(static_cast<StepPart>(part)));
  }
  return text + '\n';
}

}  // namespace

std::string study_table(const Study& study) {
  std::string text;
  for (const Scaling scaling : {Scaling::weak, Scaling::strong}) {
    const std::vector<const StudyPoint*> points = points_of(study, scaling);
    if (points.empty()) continue;
    text += (text.empty() ? "" : "\n") + heading(study, scaling);
    for (const StudyPoint* const point : points) text += row_of(*point, *points.front());
  }
  if (!text.empty()) text.pop_back();
  return text;
}

std::string study_sentences(const Study& study) {
  std::string text;
  for (const ScalingFinding& finding : judge(study)) text += printable(finding.sentence) + '\n';
  for (const std::string& sentence : judge_sweeps(study)) text += sentence + '\n';
  for (const std::string& sentence : judge_accuracy(study)) text += printable(sentence) + '\n';
  for (const CheckedPrediction& prediction : check_predictions(study)) text += prediction.sentence() + '\n';
  if (text.empty()) return "one rank count alone does not show scaling.";
  text.pop_back();
  return text;
}

}  // namespace lockstep
