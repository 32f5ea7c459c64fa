#include "search/space_reader.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/text/nearest_name.hpp"
#include "base/text/printable.hpp"

namespace lockstep {

void SpaceReader::refuse(int line, std::string_view message) const {
  throw Error(Failure::usage, fmt::format("{}{}. {}", yaml_place(file_, line), message, space_files.outcome));
}

void SpaceReader::check_fields(const YamlValue& value, std::string_view owner,
                               std::initializer_list<std::string_view> known) const {
  if (value.kind != YamlValue::Kind::map) refuse(value.line, fmt::format("{} is not a map", owner));
  for (const YamlEntry& entry : value.entries) {
    if (std::ranges::find(known, entry.key) != known.end()) continue;
    const std::vector<std::string> names(known.begin(), known.end());
    refuse(entry.line, fmt::format("unknown field '{}' of {}. {}Known: {}", printable(entry.key), owner,
                                   did_you_mean(entry.key, names), fmt::join(known, ", ")));
  }
}

const YamlValue& SpaceReader::get(const YamlValue& map, std::string_view field, std::string_view owner) const {
  const YamlValue* const value = find_value(map, field);
  if (value == nullptr) refuse(map.line, fmt::format("{} has no '{}'. Add it", owner, field));
  return *value;
}

const std::string& SpaceReader::text(const YamlValue& value, std::string_view field) const {
  if (value.kind != YamlValue::Kind::text) refuse(value.line, fmt::format("'{}' is not a string", field));
  return value.text;
}

template <typename Number>
Number SpaceReader::number(const YamlValue& value, std::string_view field, const NumberRange<Number>& range) const {
  const std::string& stated = text(value, field);
  const std::optional<Number> number = parse_number(stated, range);
  if (!number) refuse(value.line, fmt::format("'{}': {}", field, not_a_number_message(printable(stated), range)));
  return *number;
}
template std::int64_t SpaceReader::number(const YamlValue&, std::string_view, const NumberRange<std::int64_t>&) const;
template double SpaceReader::number(const YamlValue&, std::string_view, const NumberRange<double>&) const;

template <typename Number>
Number SpaceReader::number_or(const YamlValue& map, std::string_view field, const NumberRange<Number>& range,
                              Number otherwise) const {
  const YamlValue* const value = find_value(map, field);
  return value == nullptr ? otherwise : number(*value, field, range);
}
template std::int64_t SpaceReader::number_or(const YamlValue&, std::string_view, const NumberRange<std::int64_t>&,
                                             std::int64_t) const;
template double SpaceReader::number_or(const YamlValue&, std::string_view, const NumberRange<double>&, double) const;

std::optional<bool> truth_of(const YamlValue& value) {
  const bool is_truth =
      value.kind == YamlValue::Kind::text && !value.is_quoted && (value.text == "true" || value.text == "false");
  return is_truth ? std::optional(value.text == "true") : std::nullopt;
}

std::optional<bool> SpaceReader::truth(const YamlValue& map, std::string_view field) const {
  const YamlValue* const value = find_value(map, field);
  if (value == nullptr) return std::nullopt;
  if (!truth_of(*value)) refuse(value->line, fmt::format("'{}' is neither true nor false", field));
  return truth_of(*value);
}

}  // namespace lockstep
