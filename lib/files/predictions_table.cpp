#include "files/predictions_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <iterator>
#include <string_view>
#include <vector>

#include "files/result_file.hpp"

namespace lockstep {
namespace {

std::string headings(TableFormat format) {
  return fmt::format("sample{0}label{0}prediction{0}label_name{0}prediction_name\n", separator_of(format));
}

std::string picture_headings(TableFormat format) {
  return fmt::format("file{0}place{0}prediction{0}prediction_name{0}probability\n", separator_of(format));
}

bool begins_as_table(std::string_view start) {
  const auto begins_as = [&](TableFormat format) {
    return start.starts_with(headings(format)) || start.starts_with(picture_headings(format)) ||
           start.starts_with(rating_headings(format));
  };
  return begins_as(TableFormat::csv) || begins_as(TableFormat::tsv);
}

}  // namespace

std::string rating_headings(TableFormat format) { return fmt::format("user{0}movie{0}stars\n", separator_of(format)); }

void require_place_for_table(const std::filesystem::path& file) {
  static constexpr std::array<std::string_view, 2> endings = {".csv", ".tsv"};
  require_place_for_result(file, {"table of predictions", begins_as_table}, "--predictions", endings);
}

TableFormat table_format_of(const std::filesystem::path& file) {
  return file.extension() == ".tsv" ? TableFormat::tsv : TableFormat::csv;
}

std::string predictions_table(std::span<const std::int32_t> labels, std::span<const std::int32_t> predictions,
                              std::span<const std::string> classes, TableFormat format) {
  assert(labels.size() == predictions.size());
  const char separator = separator_of(format);
  std::vector<std::string> names;
  for (const std::string& name : classes) names.push_back(text_cell(name, format));
  std::string text = headings(format);
  for (std::size_t sample = 0; sample < labels.size(); ++sample) {
    fmt::format_to(std::back_inserter(text), "{1}{0}{2}{0}{3}{0}{4}{0}{5}\n", separator, sample, labels[sample],
                   predictions[sample], names.at(static_cast<std::size_t>(labels[sample])),
                   names.at(static_cast<std::size_t>(predictions[sample])));
  }
  return text;
}

std::string pictures_table(std::span<const PicturePrediction> predictions, std::span<const std::string> classes,
                           TableFormat format) {
  std::vector<std::string> names;
  for (const std::string& name : classes) names.push_back(text_cell(name, format));
  std::string text = picture_headings(format);
  for (const PicturePrediction& prediction : predictions) {
    const std::string file = text_cell(prediction.file, format);
    int place = 0;
    for (const ClassProbability& one : prediction.likeliest) {
      fmt::format_to(std::back_inserter(text), "{1}{0}{2}{0}{3}{0}{4}{0}{5:.6f}\n", separator_of(format), file, ++place,
                     one.label, names.at(static_cast<std::size_t>(one.label)), one.probability);
    }
  }
  return text;
}

}  // namespace lockstep
