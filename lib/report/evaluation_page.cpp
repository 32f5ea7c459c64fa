#include "report/evaluation_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/text/printable.hpp"
#include "dataset/loading/picture_grid.hpp"
#include "picture/png.hpp"
#include "picture/resize.hpp"
#include "report/page/html.hpp"
#include "report/page/plot.hpp"
#include "train/evaluation/class_scores.hpp"

namespace lockstep {
namespace {

using Align = TableColumn::Align;

constexpr std::int64_t largest_matrix = 40;
constexpr std::int64_t largest_numbered_matrix = 16;
constexpr std::size_t listed = 12;

double share_of(std::int64_t part, std::int64_t all) {
  return all == 0 ? 0 : static_cast<double>(part) / static_cast<double>(all);
}
std::string percent(std::int64_t part, std::int64_t all) {
  return all == 0 ? "" : fmt::format("{:.1f} %", 100 * share_of(part, all));
}

// Empty without test-time augmentation.
std::string plain_sentence(const Evaluation& evaluation) {
  const std::optional<double> plain = evaluation.plain_accuracy();
  if (!plain) return "";
  return fmt::format(" These are with test-time augmentation ({}); top-1 without it: {:.2f} %.",
                     test_augmentation_name(evaluation.augmentation), 100 * *plain);
}

std::string matrix_html(const Evaluation& evaluation, std::span<const std::string> classes) {
  const std::int64_t count = evaluation.classes;
  constexpr double side = 520;
  constexpr double margin = 110;
  const double cell = side / static_cast<double>(count);
  const double letters = std::min(13.0, 0.9 * cell);
  std::string svg;
  for (std::int64_t label = 0; label < count; ++label) {
    const double y = margin + static_cast<double>(label) * cell;
    const std::string& name = classes[static_cast<std::size_t>(label)];
    const std::string shown = escaped(shortened(name, 14));
    svg += fmt::format("<text style=\"font-size:{:.1f}px\" x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n",
                       letters, margin - 6, y + 0.5 * cell + 0.35 * letters, shown);
    svg += fmt::format("<text style=\"font-size:{:.1f}px\" transform=\"translate({:.1f} {}) rotate(-90)\">{}</text>\n",
                       letters, y + 0.5 * cell + 0.35 * letters, margin - 6, shown);
    const std::int64_t all = evaluation.label_count(label);
    for (std::int64_t c = 0; c < count; ++c) {
      const std::int64_t samples = evaluation.count(label, c);
      const double x = margin + static_cast<double>(c) * cell;
      svg +=
          fmt::format(R"(<rect class="empty" x="{0:.2f}" y="{1:.2f}" width="{2:.2f}" height="{2:.2f}"/>)", x, y, cell);
      if (samples == 0) continue;
      svg += fmt::format(
          "<rect class=\"{}\" opacity=\"{:.3f}\" x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" "
          "height=\"{:.2f}\"><title>{} predicted as {}: {} of {}</title></rect>",
          label == c ? "cell" : "wrong", 0.08 + 0.62 * std::sqrt(share_of(samples, all)), x, y, cell, cell,
          escaped(name), escaped(classes[static_cast<std::size_t>(c)]), samples, all);
      if (count > largest_numbered_matrix) continue;
      svg += fmt::format(
          "<text class=\"count\" style=\"font-size:{:.1f}px\" x=\"{:.1f}\" y=\"{:.1f}\" "
          "text-anchor=\"middle\">{}</text>\n",
          std::min(13.0, 0.3 * cell), x + 0.5 * cell, y + 0.5 * cell + 0.12 * cell, samples);
    }
  }
  return fmt::format(
      "<h3>Confusion matrix</h3>\n{}<figure class=\"matrix\"><svg viewBox=\"0 0 {} {}\" role=\"img\" "
      "aria-label=\"Confusion matrix\">\n{}</svg></figure>\n",
      html_paragraph("Rows are labels, columns are predictions, and cells are numbers of samples. A stronger color is "
                     "a larger share of the row."),
      side + margin + 4, side + margin + 4, svg);
}

std::string worst_classes_html(const Evaluation& evaluation, std::span<const std::string> classes) {
  std::vector<std::vector<std::string>> rows;
  for (const ClassScore& score : worst_classes(evaluation)) {
    if (rows.size() == listed) break;
    rows.push_back({classes[static_cast<std::size_t>(score.label)], std::to_string(score.samples),
                    percent(score.correct, score.samples), percent(score.correct, score.predicted)});
  }
  const std::vector<TableColumn> columns{
      {"class", Align::left}, {"samples", Align::right}, {"recall", Align::right}, {"precision", Align::right}};
  return "<h3>Worst classes</h3>\n" + html_table(columns, rows);
}

std::string confusions_html(const Evaluation& evaluation, std::span<const std::string> classes) {
  std::vector<std::vector<std::string>> rows;
  for (const Confusion& confusion : confusions_of(evaluation)) {
    if (rows.size() == listed) break;
    rows.push_back({classes[static_cast<std::size_t>(confusion.label)],
                    classes[static_cast<std::size_t>(confusion.prediction)], std::to_string(confusion.samples),
                    percent(confusion.samples, evaluation.label_count(confusion.label))});
  }
  if (rows.empty()) return html_paragraph("All samples are classified correctly.");
  const std::vector<TableColumn> columns{{"label", Align::left},
                                         {"predicted as", Align::left},
                                         {"samples", Align::right},
                                         {"share of the class", Align::right}};
  return "<h3>Most frequent confusions</h3>\n" + html_table(columns, rows);
}

std::string pictures_html(std::span<const MisclassifiedImage> pictures, std::span<const std::string> classes) {
  if (pictures.empty()) return "";
  std::string html = "<h3>Misclassified images</h3>\n<div class=\"pictures\">\n";
  for (const MisclassifiedImage& picture : pictures) {
    const std::string label = escaped(classes[static_cast<std::size_t>(picture.label)]);
    const std::string prediction = escaped(classes[static_cast<std::size_t>(picture.prediction)]);
    html += fmt::format(
        "<figure><img src=\"{}\" alt=\"sample {}\">{}<br><span class=\"quiet\">predicted as</span> {}</figure>\n",
        png_link(picture.png), picture.sample, label, prediction);
  }
  return html + "</div>\n";
}

}  // namespace

std::vector<std::int64_t> select_misclassified(const Evaluation& evaluation, std::span<const std::int32_t> labels,
                                               std::size_t most) {
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<std::int64_t>> of_kind;
  for (std::size_t sample = 0; sample < labels.size(); ++sample) {
    const std::int32_t prediction = evaluation.predictions[sample];
    if (labels[sample] == prediction) continue;
    std::vector<std::int64_t>& samples = of_kind[{labels[sample], prediction}];
    if (samples.size() < most) samples.push_back(static_cast<std::int64_t>(sample));
  }
  const std::vector<Confusion> kinds = confusions_of(evaluation);
  std::vector<std::int64_t> chosen;
  for (std::size_t turn = 0; turn < most && chosen.size() < most; ++turn) {
    for (const Confusion& kind : kinds) {
      const std::vector<std::int64_t>& samples = of_kind[{kind.label, kind.prediction}];
      if (turn < samples.size() && chosen.size() < most) chosen.push_back(samples[turn]);
    }
  }
  return chosen;
}

std::vector<MisclassifiedImage> misclassified_images(const Evaluation& evaluation, const Dataset& dataset,
                                                     const ImageRules& rules, std::size_t most,
                                                     std::int64_t longest_side) {
  const std::vector<std::int32_t> labels = labels_of(dataset);
  std::vector<MisclassifiedImage> pictures;
  for (const std::int64_t sample : select_misclassified(evaluation, labels, most)) {
    OwnedPicture shown = tested_picture(dataset, rules, sample);
    const PictureSize small = with_longest_side(shown.size, longest_side);
    if (small != shown.size) {
      OwnedPicture resized;
      resize(shown, {{0, 0, shown.size}, small}, resized);
      shown = std::move(resized);
    }
    const auto place = static_cast<std::size_t>(sample);
    pictures.push_back({labels[place], evaluation.predictions[place], sample, encode_png(shown)});
  }
  return pictures;
}

std::string evaluation_html(std::string_view heading, const Evaluation& evaluation,
                            std::span<const std::string> classes, std::span<const MisclassifiedImage> pictures) {
  std::vector<std::string> names;
  for (const std::string& name : classes) names.push_back(printable_name(name));
  std::string html = html_paragraph(
      fmt::format("{} of {} samples are classified correctly (top-1: {:.2f} %, top-5: {:.2f} %). Mean loss: {:.4f}.",
                  evaluation.correct(), evaluation.samples, 100 * evaluation.accuracy(), 100 * evaluation.top5(),
                  evaluation.loss()) +
      plain_sentence(evaluation));
  html +=
      evaluation.classes <= largest_matrix
          ? matrix_html(evaluation, names)
          : html_paragraph(fmt::format("A confusion matrix of {} classes is too large to draw.", evaluation.classes));
  html += worst_classes_html(evaluation, names) + confusions_html(evaluation, names);
  return html_section(heading, html + pictures_html(pictures, names));
}

}  // namespace lockstep
