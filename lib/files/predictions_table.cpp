#include "files/predictions_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <iterator>
#include <string_view>
#include <vector>

#include "base/text/printable.hpp"
#include "files/result_file.hpp"

namespace lockstep {
namespace {

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string field = "\"";
  for (const char letter : text) field.append(letter == '"' ? 2 : 1, letter);
  return field + '"';
}

std::string headings(TableFormat format) {
  return fmt::format("sample{0}label{0}prediction{0}label_name{0}prediction_name\n",
                     format == TableFormat::csv ? ',' : '\t');
}

std::string picture_headings(TableFormat format) {
  return fmt::format("file{0}place{0}prediction{0}prediction_name{0}probability\n",
                     format == TableFormat::csv ? ',' : '\t');
}

// As it stands in a line.
std::string field(const std::string& text, TableFormat format) {
  return format == TableFormat::csv ? csv_field(text) : printable(text);
}

bool begins_as_table(std::string_view start) {
  const auto begins_as = [&](TableFormat format) {
    return start.starts_with(headings(format)) || start.starts_with(picture_headings(format));
  };
  return begins_as(TableFormat::csv) || begins_as(TableFormat::tsv);
}

}  // namespace

void require_place_for_table(const std::filesystem::path& file) {
  require_place_for_result(file, {"table of predictions", begins_as_table}, "--predictions");
}

TableFormat table_format_of(const std::filesystem::path& file) {
  return file.extension() == ".tsv" ? TableFormat::tsv : TableFormat::csv;
}

std::string predictions_table(std::span<const std::int32_t> labels, std::span<const std::int32_t> predictions,
                              std::span<const std::string> classes, TableFormat format) {
  assert(labels.size() == predictions.size());
  const char separator = format == TableFormat::csv ? ',' : '\t';
  std::vector<std::string> names;
  for (const std::string& name : classes) names.push_back(field(name, format));
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
  for (const std::string& name : classes) names.push_back(field(name, format));
  std::string text = picture_headings(format);
  for (const PicturePrediction& prediction : predictions) {
    const std::string file = field(prediction.file, format);
    int place = 0;
    for (const ClassProbability& one : prediction.likeliest) {
      fmt::format_to(std::back_inserter(text), "{1}{0}{2}{0}{3}{0}{4}{0}{5:.6f}\n",
                     format == TableFormat::csv ? ',' : '\t', file, ++place, one.label,
                     names.at(static_cast<std::size_t>(one.label)), one.probability);
    }
  }
  return text;
}

}  // namespace lockstep
