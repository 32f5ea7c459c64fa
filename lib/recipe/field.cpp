#include "recipe/field.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <limits>
#include <optional>

#include "base/text/json_text.hpp"
#include "base/text/number.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::json;

// Converts a text that texts() returned.
Json json_of_text(Field::JsonType type, const std::string& text) {
  constexpr double largest = std::numeric_limits<double>::max();
  switch (type) {
    case Field::JsonType::flag:
      return text == "true";
    case Field::JsonType::whole_number:
      return parse_number(text, NumberRange<std::uint64_t>{0, std::numeric_limits<std::uint64_t>::max()}).value();
    case Field::JsonType::number:
      return parse_number(text, NumberRange<double>{-largest, largest}).value();
    case Field::JsonType::text:
      break;
  }
  return text;
}

// std::nullopt if JSON of this type cannot be the value of an option.
std::optional<std::string> text_of_json(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return value.get<bool>() ? "true" : "false";
  if (value.is_number_unsigned()) return number_text(value.get<std::uint64_t>());
  if (value.is_number_integer()) return number_text(value.get<std::int64_t>());
  if (value.is_number()) return number_text(value.get<double>());
  return std::nullopt;
}

}  // namespace

const char* heading_of(FieldGroup group) {
  switch (group) {
    case FieldGroup::data:
    case FieldGroup::staging:
      return "Data";
    case FieldGroup::augmentation:
    case FieldGroup::resizing:
    case FieldGroup::testing:
      return "Augmentation";
    case FieldGroup::model:
      return "Model";
    case FieldGroup::optimizer:
      return "Optimizer";
    case FieldGroup::schedule:
      return "Schedule";
    case FieldGroup::device:
      return "Precision and device";
    case FieldGroup::batch:
    case FieldGroup::sync:
    case FieldGroup::reduction:
      return "Distribution";
    case FieldGroup::output:
      return "Output";
    case FieldGroup::checkpoints:
      return "Checkpoints";
    case FieldGroup::monitoring:
      break;
  }
  return "Monitoring";
}

std::string off_option(const Field& field) {
  if (field.form != Field::Form::flag || field.part != Field::Part::recipe) return "";
  constexpr std::string_view no = "no-";
  return field.name.starts_with(no) ? field.name.substr(no.size()) : fmt::format("{}{}", no, field.name);
}

Json json_of(const Field& field, const Settings& settings) {
  const std::vector<std::string> texts = field.texts(settings);
  if (field.form == Field::Form::flag) return !texts.empty();
  if (field.form == Field::Form::one) return texts.empty() ? Json() : json_of_text(field.json_type, texts.front());
  Json list = Json::array();
  for (const std::string& text : texts) list.push_back(json_of_text(field.json_type, text));
  return list;
}

std::string set_from_json(const Field& field, Settings& settings, const Json& value) {
  if (value.is_null() && !field.may_be_unset) return "it is missing";
  std::vector<std::string> texts;
  const bool is_list = field.form == Field::Form::list && value.is_array();
  const Json values = is_list ? value : value.is_null() ? Json::array() : Json::array({value});
  for (const Json& one : values) {
    const std::optional<std::string> text = text_of_json(one);
    const bool is_its_kind = one.is_boolean() == (field.form == Field::Form::flag) &&
                             one.is_string() == (field.json_type == Field::JsonType::text);
    if (!text || !is_its_kind) return fmt::format("{} is not a valid value", json_text(one));
    if (*text == "false") continue;
    if (std::string message = field.validation_error(*text); !message.empty()) return message;
    texts.push_back(*text);
  }
  field.set(settings, texts);
  return "";
}

}  // namespace lockstep
