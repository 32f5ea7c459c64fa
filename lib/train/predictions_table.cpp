#include "train/predictions_table.hpp"

#include <fmt/format.h>

#include <cassert>
#include <iterator>
#include <vector>

#include "base/printable.hpp"

namespace lockstep {
namespace {

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string field = "\"";
  for (const char letter : text) field.append(letter == '"' ? 2 : 1, letter);
  return field + '"';
}

}  // namespace

TableFormat table_format_of(const std::filesystem::path& file) {
  return file.extension() == ".tsv" ? TableFormat::tsv : TableFormat::csv;
}

std::string predictions_table(std::span<const std::int32_t> labels, std::span<const std::int32_t> predictions,
                              std::span<const std::string> classes, TableFormat format) {
  assert(labels.size() == predictions.size());
  const char separator = format == TableFormat::csv ? ',' : '\t';
  std::vector<std::string> names;
  for (const std::string& name : classes) {
    names.push_back(format == TableFormat::csv ? csv_field(name) : printable(name));
  }
  std::string text = fmt::format("sample{0}label{0}prediction{0}label_name{0}prediction_name\n", separator);
  for (std::size_t sample = 0; sample < labels.size(); ++sample) {
    fmt::format_to(std::back_inserter(text), "{1}{0}{2}{0}{3}{0}{4}{0}{5}\n", separator, sample, labels[sample],
                   predictions[sample], names.at(static_cast<std::size_t>(labels[sample])),
                   names.at(static_cast<std::size_t>(predictions[sample])));
  }
  return text;
}

}  // namespace lockstep
