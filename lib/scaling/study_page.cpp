#include "scaling/study_page.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

#include "report/page/html.hpp"
#include "scaling/findings.hpp"

namespace lockstep {
namespace {

constexpr std::array<Scaling, 2> scalings = {Scaling::weak, Scaling::strong};

PlotSeries series_of(std::string_view name, int color) {
  return {std::string(name), color, PlotSeries::Shape::dotted_line, {}, {}};
}

void add(PlotSeries& series, double x, const Interval& value, double unit) {
  series.points.push_back({x, unit * value.middle});
  series.spread.push_back({unit * value.low, unit * value.high});
}

double ms_of(const StudyPoint& point, std::size_t part) { return 1e3 * point.part(static_cast<StepPart>(part)); }

std::string legend_html() {
  std::string html = "<div class=\"legend\">";
  for (std::size_t part = 0; part < step_part_count; ++part) {
    html += fmt::format(R"(<span><span class="swatch" style="background:{}"></span>{}</span>)",
                        plot_color(static_cast<int>(part)), describe(static_cast<StepPart>(part)));
  }
  return html + "</div>\n";
}

// One bar for each point; the axis ends at `most` milliseconds.
std::string bars_svg(const std::vector<const StudyPoint*>& points, double most) {
  constexpr double foot = PlotFrame::height - PlotFrame::bottom;
  constexpr double room = PlotFrame::width - PlotFrame::left - PlotFrame::right;
  const auto y_of = [&](double ms) { return foot - ms / most * (foot - PlotFrame::top); };
  std::string svg = fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\">\n", PlotFrame::width, PlotFrame::height);
  const Ticks ticks = ticks_between(0, most, 8);
  for (const double tick : ticks.values) {
    svg += fmt::format(
        "<line class=\"grid\" x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/><text x=\"{}\" y=\"{:.1f}\" "
        "text-anchor=\"end\">{} ms</text>\n",
        PlotFrame::left, PlotFrame::width - PlotFrame::right, y_of(tick), y_of(tick), PlotFrame::left - 7,
        y_of(tick) + 4.5, tick_text(tick, ticks));
  }
  const double pitch = room / static_cast<double>(points.size());
  for (std::size_t index = 0; index < points.size(); ++index) {
    const StudyPoint& point = *points[index];
    const double left = PlotFrame::left + (static_cast<double>(index) + 0.2) * pitch;
    double below = 0;
    for (std::size_t part = 0; part < step_part_count; ++part) {
      const double ms = ms_of(point, part);
      svg += fmt::format(
          "<rect fill=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"><title>{}: {:.3g} "
          "ms</title></rect>\n",
          plot_color(static_cast<int>(part)), left, y_of(below + ms), 0.6 * pitch, y_of(below) - y_of(below + ms),
          describe(static_cast<StepPart>(part)), ms);
      below += ms;
    }
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", left + 0.3 * pitch, foot + 18,
                       point.grid.ranks);
  }
  return svg + fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">ranks</text>\n</svg>\n",
                           PlotFrame::left + room / 2, PlotFrame::height - 8);
}

std::string html_speed_table(const std::vector<const StudyPoint*>& points) {
  using Align = TableColumn::Align;
  std::vector<TableColumn> columns = {{"ranks"}};
  for (const char* const name : {"nodes", "samples per rank", "samples/s", "±", "efficiency", "±", "step, ms", "±"}) {
    columns.push_back({name, Align::right});
  }
  const auto error = [](const Interval& interval, double unit) {
    return interval.is_bounded() ? fmt::format("{:.2f}", unit * interval.half_width()) : std::string("?");
  };
  std::vector<std::vector<std::string>> rows;
  for (const StudyPoint* const point : points) {
    const Interval rate = throughput_of(*point);
    const Interval kept = efficiency_of(*point, *points.front());
    const Interval step = median_interval(point->step_seconds);
    rows.push_back({fmt::format("{}", point->grid.ranks), fmt::format("{}", point->grid.nodes),
                    fmt::format("{}", point->batch_per_rank), fmt::format("{:.1f}", rate.middle), error(rate, 1),
                    fmt::format("{:.1f} %", 100 * kept.middle), error(kept, 100),
                    fmt::format("{:.2f}", 1e3 * step.middle), error(step, 1e3)});
  }
  return html_table(columns, rows);
}

// Empty if the device does not report the parts.
std::string html_parts_table(const std::vector<const StudyPoint*>& points) {
  std::vector<TableColumn> columns = {{"ranks"}};
  for (std::size_t part = 0; part < step_part_count; ++part) {
    columns.push_back({fmt::format("{}, ms", name_of(static_cast<StepPart>(part))), TableColumn::Align::right});
  }
  std::vector<std::vector<std::string>> rows;
  for (const StudyPoint* const point : points) {
    if (!point->has_parts()) continue;
    rows.push_back({fmt::format("{}", point->grid.ranks)});
    for (std::size_t part = 0; part < step_part_count; ++part) {
      rows.back().push_back(fmt::format("{:.2f}", ms_of(*point, part)));
    }
  }
  return rows.empty() ? "" : html_table(columns, rows);
}

std::string value_text(Sweep sweep, const StudySetup& setup) {
  if (sweep == Sweep::precision) return setup.precision;
  if (sweep == Sweep::exchange) return name_of(setup.exchange);
  return fmt::format("{}", sweep == Sweep::threads ? setup.threads : setup.bucket_mib);
}

std::string_view name_of(Sweep sweep) {
  constexpr std::array<std::string_view, sweeps.size()> names = {"threads per rank", "buckets, MiB", "precision",
                                                                 "exchange"};
  return names[static_cast<std::size_t>(sweep)];
}

// What a trainer adds to sums, or pushes to servers, for an update.
double megabytes_exchanged(const Study& study, const StudyPoint& point) {
  double bytes = 0;
  if (point.setup.exchange.servers > 0) bytes = sizeof(float) * static_cast<double>(study.parameters);
  for (const Bucket& bucket : point.buckets) bytes += static_cast<double>(bucket.bytes);
  return 1e-6 * bytes / static_cast<double>(point.setup.exchange.local_steps);
}

// A table with the default value first, and a plot if the values are numbers.
std::string sweep_html(const Study& study, Sweep sweep) {
  using Align = TableColumn::Align;
  const std::vector<const StudyPoint*> points = points_of(study, sweep);
  if (points.empty()) return "";
  std::vector<TableColumn> columns = {{std::string(name_of(sweep))},
                                      {"samples/s", Align::right},
                                      {"±", Align::right},
                                      {"relative to the first", Align::right},
                                      {"±", Align::right}};
  if (sweep == Sweep::exchange) {
    columns.push_back({"exchanged per update, MB", Align::right});
    columns.push_back({"exposed, ms", Align::right});
  }
  const auto error = [](const Interval& interval, int decimals) {
    return interval.is_bounded() ? fmt::format("{:.{}f}", interval.half_width(), decimals) : std::string("?");
  };
  std::vector<std::vector<std::string>> rows;
  for (const StudyPoint* const point : points) {
    const Interval rate = throughput_of(*point);
    const Interval ratio = speed_ratio(*point, *points.front());
    rows.push_back({value_text(sweep, point->setup), fmt::format("{:.1f}", rate.middle), error(rate, 1),
                    fmt::format("{:.3f}", ratio.middle), error(ratio, 3)});
    if (sweep != Sweep::exchange) continue;
    rows.back().push_back(fmt::format("{:.3g}", megabytes_exchanged(study, *point)));
    rows.back().push_back(point->has_parts() ? fmt::format("{:.2f}", 1e3 * point->part(StepPart::exposed)) : "?");
  }
  const bool has_numbers = sweep == Sweep::threads || sweep == Sweep::buckets;
  const std::string plot = has_numbers ? html_plots({sweep_plot(study, sweep)}) : "";
  return html_beside(html_table(columns, rows), plot);
}

std::string accuracy_html(const Study& study) {
  using Align = TableColumn::Align;
  const std::vector<TableColumn> columns = {{"samples per step"},    {"accuracy, %", Align::right}, {"±", Align::right},
                                            {"seeds", Align::right}, {"samples/s", Align::right},   {"missing"}};
  std::vector<std::vector<std::string>> rows;
  Plot accuracy{"Test accuracy", {.name = "samples per step", .least_step = 1}, {"", " %"}, {}, {}};
  Plot speed{"Throughput", {.name = "samples per step", .least_step = 1}, {"samples per second", "", 0}, {}, {}};
  PlotSeries shares = series_of("accuracy", 0);
  PlotSeries rates = series_of("samples per second", 1);
  for (const BatchAccuracy& batch : study.accuracies) {
    const Interval rate = best_throughput(study, batch.global_batch);
    rows.push_back({fmt::format("{}", batch.global_batch), "?", "?", fmt::format("{}", batch.accuracies.size()),
                    fmt::format("{:.1f}", rate.middle), batch.missing});
    add(rates, static_cast<double>(batch.global_batch), rate, 1);
    if (batch.accuracies.empty()) continue;
    const Interval share = mean_interval(batch.accuracies);
    rows.back()[1] = fmt::format("{:.1f}", 100 * share.middle);
    if (share.is_bounded()) rows.back()[2] = fmt::format("{:.1f}", 100 * share.half_width());
    add(shares, static_cast<double>(batch.global_batch), share, 100);
  }
  accuracy.series.push_back(std::move(shares));
  speed.series.push_back(std::move(rates));
  return html_beside(html_table(columns, rows), html_plots({accuracy, speed}));
}

std::string findings_html(const Study& study) {
  std::string html;
  for (const ScalingFinding& finding : judge(study)) html += html_paragraph(finding.sentence);
  for (const std::string& sentence : judge_sweeps(study)) html += html_paragraph(sentence);
  for (const std::string& sentence : judge_accuracy(study)) html += html_paragraph(sentence);
  for (const CheckedPrediction& prediction : check_predictions(study)) html += html_paragraph(prediction.sentence());
  return html.empty() ? html_paragraph("One rank count alone does not show scaling.") : html;
}

std::string machine_html(const Study& study) {
  std::vector<std::vector<std::string>> rows = {
      {"model", fmt::format("{}, {} parameters", study.model, study.parameters)},
      {"images", fmt::format("{} x {} pixels, input: {}", study.image_height, study.image_width, study.input)},
      {"device", fmt::format("{}, {}", study.device, study.setup.precision)},
      {"cores per node", fmt::format("{}", study.cores)},
      {"gradient all-reduce", study.reducer},
      {"measured", fmt::format("{} to {}", study.started, study.ended)},
      {"command", study.command},
      {"commit", study.commit}};
  std::vector<std::string> hosts = study.hosts;
  hosts.erase(std::unique(hosts.begin(), hosts.end()), hosts.end());
  std::string names;
  for (const std::string& host : hosts) names += (names.empty() ? "" : ", ") + host;
  rows.push_back({"hosts", names});
  for (const auto& [name, version] : study.versions) rows.push_back({name, version});
  return html_table(std::vector<TableColumn>{{""}, {""}}, rows);
}

}  // namespace

Plot throughput_plot(const Study& study) {
  Plot plot{"Throughput", {.name = "ranks", .least_step = 1}, {"samples per second", "", 0}, {}, {}};
  for (const Scaling scaling : scalings) {
    const std::vector<const StudyPoint*> points = points_of(study, scaling);
    if (points.empty()) continue;
    PlotSeries measured = series_of(fmt::format("{} scaling", name_of(scaling)), static_cast<int>(scaling));
    for (const StudyPoint* const point : points) add(measured, point->grid.ranks, throughput_of(*point), 1);
    plot.series.push_back(std::move(measured));
    if (scaling == Scaling::strong) continue;
    PlotSeries ideal{"no loss", 7, PlotSeries::Shape::line, {}, {}};
    const double each = throughput_of(*points.front()).middle / points.front()->grid.ranks;
    for (const StudyPoint* const point : points) {
      ideal.points.push_back({static_cast<double>(point->grid.ranks), each * point->grid.ranks});
    }
    plot.series.push_back(std::move(ideal));
  }
  return plot;
}

Plot efficiency_plot(const Study& study) {
  Plot plot{"Efficiency: throughput of a rank", {.name = "ranks", .least_step = 1}, {"", " %", 0}, {}, {}};
  for (const Scaling scaling : scalings) {
    const std::vector<const StudyPoint*> points = points_of(study, scaling);
    if (points.empty()) continue;
    PlotSeries kept = series_of(fmt::format("{} scaling", name_of(scaling)), static_cast<int>(scaling));
    for (const StudyPoint* const point : points) {
      add(kept, point->grid.ranks, efficiency_of(*point, *points.front()), 100);
    }
    plot.series.push_back(std::move(kept));
  }
  return plot;
}

Plot sweep_plot(const Study& study, Sweep sweep) {
  std::vector<const StudyPoint*> points = points_of(study, sweep);
  const auto value_of = [&](const StudyPoint* point) {
    return sweep == Sweep::threads ? point->setup.threads : point->setup.bucket_mib;
  };
  std::ranges::sort(points, {}, value_of);
  PlotSeries rates = series_of("samples per second", 0);
  for (const StudyPoint* const point : points) {
    add(rates, static_cast<double>(value_of(point)), throughput_of(*point), 1);
  }
  return {fmt::format("Throughput by {}", name_of(sweep)),
          {.name = std::string(name_of(sweep)), .least_step = 1},
          {"samples per second", "", 0},
          {std::move(rates)},
          {}};
}

std::string html_step_bars(const Study& study, Scaling scaling) {
  std::vector<const StudyPoint*> points = points_of(study, scaling);
  std::erase_if(points, [](const StudyPoint* point) { return !point->has_parts(); });
  if (points.empty()) return "";
  double most = 0;
  for (const StudyPoint* const point : points) {
    double step = 0;
    for (std::size_t part = 0; part < step_part_count; ++part) step += ms_of(*point, part);
    most = std::max(most, step);
  }
  return fmt::format("<figure><figcaption>Parts of a step, {} scaling</figcaption>\n{}{}</figure>\n", name_of(scaling),
                     legend_html(), bars_svg(points, 1.05 * most));
}

std::string study_page(const Study& study) {
  const std::string title = fmt::format("Scaling of {} up to {} ranks", study.model, max_ranks_of(study));
  std::string html = fmt::format("<h1>{}</h1>\n", escaped(title));
  html += html_beside(html_section("Findings", findings_html(study)),
                      html_section("Throughput and efficiency",
                                   html_plots({throughput_plot(study), efficiency_plot(study)}) +
                                       html_paragraph(fmt::format("Bands are 95 % intervals over repeats. {}",
                                                                  fmt::join(efficiency_note, " ")))));
  std::string bars;
  std::string tables;
  for (const Scaling scaling : scalings) {
    bars += html_step_bars(study, scaling);
    const std::vector<const StudyPoint*> points = points_of(study, scaling);
    if (points.empty()) continue;
    tables +=
        html_section(scaling == Scaling::weak ? fmt::format("Weak scaling: {} samples per rank", study.weak_batch)
                                              : fmt::format("Strong scaling: {} samples per step", study.strong_batch),
                     html_speed_table(points) + html_parts_table(points));
  }
  if (!bars.empty()) html += html_section("Parts of a step", fmt::format("<div class=\"plots\">{}</div>\n", bars));
  html += tables;
  std::string varied;
  for (const Sweep sweep : sweeps) varied += sweep_html(study, sweep);
  if (!varied.empty()) {
    html += html_section(fmt::format("Sweeps at {} ranks, {} samples per rank", max_ranks_of(study), study.weak_batch),
                         varied);
  }
  if (!study.accuracies.empty()) {
    html += html_section(fmt::format("Accuracy and speed after {} {}", study.accuracy_epochs,
                                     study.accuracy_epochs == 1 ? "epoch" : "epochs"),
                         accuracy_html(study));
  }
  html += html_section("Machine and versions", machine_html(study));
  return html_page(title, html);
}

}  // namespace lockstep
