#include "search/space/space_reader.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <sstream>

#include "base/log.hpp"
#include "base/text/nearest_name.hpp"
#include "base/text/printable.hpp"

namespace lockstep {

void SpaceReader::refuse(int line, std::string_view message) const {
  throw Error(Failure::usage, fmt::format("{}{}. {}", yaml_place(file_, line), message, space_files.outcome));
}

void SpaceReader::add_refusal(int line, std::string_view message) {
  refusals_.push_back({line, fmt::format("{}{}.", yaml_place(file_, line), message)});
}

void SpaceReader::keep(int line, const Error& error) {
  if (error.failure() != Failure::usage) throw error;
  std::string text = error.what();
  if (text.ends_with(space_files.outcome)) text.erase(text.size() - space_files.outcome.size() - 1);
  refusals_.push_back({line, std::move(text)});
}

std::vector<std::string> SpaceReader::refusals() const {
  std::vector<Refusal> sorted = refusals_;
  std::ranges::stable_sort(sorted, {}, &Refusal::line);
  std::vector<std::string> texts;
  for (Refusal& refusal : sorted) texts.push_back(std::move(refusal.text));
  return texts;
}

void SpaceReader::throw_refusals() const {
  std::vector<std::string> texts = refusals();
  if (texts.empty()) return;
  const std::string last = std::move(texts.back());
  texts.pop_back();
  for (const std::string& text : texts) log::warning(text);
  throw Error(Failure::usage, fmt::format("{} {}", last, space_files.outcome));
}

void SpaceReader::check_fields(const YamlValue& value, std::string_view owner,
                               std::initializer_list<std::string_view> known) {
  if (value.kind != YamlValue::Kind::map) refuse(value.line, fmt::format("{} is not a map", owner));
  for (const YamlEntry& entry : value.entries) {
    if (std::ranges::find(known, entry.key) != known.end()) continue;
    const std::vector<std::string> names(known.begin(), known.end());
    add_refusal(entry.line, fmt::format("unknown field '{}' of {}. {}Known: {}", printable(entry.key), owner,
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

std::vector<std::string> words_in(const std::string& text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

YamlValue stated_text(const std::string& text) {
  YamlValue value = plain_scalar(text, space_files);
  value.kind = YamlValue::Kind::text;  // also "" and "null"
  return value;
}

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
