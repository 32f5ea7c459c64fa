#include "scaling/study_table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "base/text/printable.hpp"
#include "base/text/text_table.hpp"
#include "scaling/findings.hpp"

namespace lockstep {
namespace {

constexpr double milliseconds = 1e3;

std::string lines_of(const std::vector<TextColumn>& columns) {
  return fmt::format("{}\n", fmt::join(text_table(columns, terminal_width), "\n"));
}

std::string speed_table(const std::vector<const StudyPoint*>& points) {
  std::vector<TextColumn> columns = {{"ranks"},     {"nodes"},         {"batch-per-rank"},
                                     {"samples/s"}, {"efficiency, %"}, {"step, ms"}};
  for (const StudyPoint* const point : points) {
    add_row(columns, {fmt::format("{}", point->grid.ranks), fmt::format("{}", point->grid.nodes),
                      fmt::format("{}", point->batch_per_rank), text_of(throughput_of(*point), 1),
                      text_of(efficiency_of(*point, *points.front()) * 100, 1),
                      fmt::format("{:.2f}", milliseconds * median_interval(point->step_seconds).middle)});
  }
  return lines_of(columns);
}

// Empty if the device does not report the parts.
std::string parts_table(const std::vector<const StudyPoint*>& points) {
  std::vector<TextColumn> columns = {{"ranks"}};
  for (std::size_t part = 0; part < step_part_count; ++part) {
    columns.push_back({std::string(name_of(static_cast<StepPart>(part)))});
  }
  for (const StudyPoint* const point : points) {
    if (!point->has_parts()) continue;
    std::vector<std::string> row = {fmt::format("{}", point->grid.ranks)};
    for (std::size_t part = 0; part < step_part_count; ++part) {
      row.push_back(fmt::format("{:.2f}", milliseconds * point->part(static_cast<StepPart>(part))));
    }
    add_row(columns, row);
  }
  return columns.front().cells.empty() ? "" : "\nparts of a step, ms\n" + lines_of(columns);
}

std::string heading(const Study& study, Scaling scaling) {
  return scaling == Scaling::weak ? fmt::format("weak scaling, {} samples per rank\n", study.weak_batch)
                                  : fmt::format("strong scaling, {} samples per step\n", study.strong_batch);
}

}  // namespace

std::string study_table(const Study& study) {
  std::string text;
  for (const Scaling scaling : {Scaling::weak, Scaling::strong}) {
    const std::vector<const StudyPoint*> points = points_of(study, scaling);
    if (points.empty()) continue;
    text += (text.empty() ? "" : "\n") + heading(study, scaling) + speed_table(points) + parts_table(points);
  }
  return fmt::format("{}\n{}", text, fmt::join(efficiency_note, "\n"));
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
