// Text forms of field values, and functions that build a field from a form and a place. For the table in fields.cpp.
#pragma once

#include <fmt/core.h>

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/text/choice.hpp"
#include "base/text/number.hpp"
#include "models/model_zoo.hpp"
#include "recipe/field.hpp"

namespace lockstep {

// A form has validation_error(), parse() of a text that validation_error() accepts, and text() of a value.
template <typename Number>
struct NumberForm {
  static constexpr Field::JsonType json_type =
      std::is_integral_v<Number> ? Field::JsonType::whole_number : Field::JsonType::number;
  NumberRange<Number> range;

  std::string values() const { return describe_range(range); }
  std::string validation_error(const std::string& text) const {
    return parse_number(text, range) ? std::string() : not_a_number_message(text, range);
  }
  Number parse(const std::string& text) const { return parse_number(text, range).value(); }
  std::string text(Number number) const { return number_text(number); }
};

// A number that the user chooses.
struct ChosenNumberForm {
  static constexpr Field::JsonType json_type = Field::JsonType::whole_number;
  NumberForm<std::int64_t> form;

  std::string values() const { return form.values(); }
  std::string validation_error(const std::string& text) const { return form.validation_error(text); }
  ChosenNumber parse(const std::string& text) const { return {form.parse(text), ChosenBy::user}; }
  std::string text(const ChosenNumber& number) const { return form.text(number.value); }
};

template <typename Choices>
struct ChoiceForm {
  static constexpr Field::JsonType json_type = Field::JsonType::text;
  Choices choices;

  std::string values() const { return choice_names(choices); }
  std::string validation_error(const std::string& text) const {
    return find_choice(choices, text) != nullptr ? std::string() : unknown_choice_message(choices, text);
  }
  auto parse(const std::string& text) const { return find_choice(choices, text)->value; }
  template <typename Value>
  std::string text(const Value& value) const {
    return choice_name(choices, value);
  }
};

// Any text, or a path.
struct TextForm {
  static constexpr Field::JsonType json_type = Field::JsonType::text;

  static std::string values() { return ""; }
  static std::string validation_error(const std::string&) { return ""; }
  static std::string parse(const std::string& text) { return text; }
  static std::string text(const std::string& value) { return value; }
};

// A folder or a file. An empty text is an error, because it usually comes from an unset shell variable.
struct NamedFolderForm : TextForm {
  static std::string validation_error(const std::string& text) {
    return text.empty() ? "'' is not the name of a folder (is a variable unset?)" : "";
  }
};
struct NamedFileForm : TextForm {
  static std::string validation_error(const std::string& text) {
    return text.empty() ? "'' is not the name of a file (is a variable unset?)" : "";
  }
};

// make_model() checks the name, which may have the ending of a variant.
struct ModelForm : TextForm {
  static std::string values() { return known_models(); }
};

// Limited to the size of a text in a checkpoint.
struct NoteForm : TextForm {
  static std::string validation_error(const std::string& text) {
    constexpr std::size_t max_bytes = 4096;
    if (text.size() <= max_bytes) return "";
    return fmt::format("it has {} bytes, but a note has at most {}. Write the rest into a separate file", text.size(),
                       max_bytes);
  }
};

struct TagForm : TextForm {
  static std::string values() { return "KEY=VALUE"; }
  static std::string validation_error(const std::string& text) {
    constexpr std::size_t max_bytes = 255;
    if (text.size() > max_bytes) {
      return fmt::format("it has {} bytes, but a tag has at most {}. Use --note for longer text", text.size(),
                         max_bytes);
    }
    const std::size_t equals = text.find('=');
    const bool is_tag = equals != std::string::npos && equals > 0;
    return is_tag ? "" : fmt::format("'{}' is not a tag. Write KEY=VALUE", text);
  }
};

// A shell pattern of parameter names, and the factor of their learning rate.
struct RateScaleForm {
  static constexpr Field::JsonType json_type = Field::JsonType::text;
  static constexpr NumberRange<float> range{0, 1e6F};

  static std::string values() { return "PATTERN=FACTOR"; }
  static std::string validation_error(const std::string& text) {
    if (read(text)) return "";
    return fmt::format("'{}' is not PATTERN=FACTOR, with a number {}. Write 'fc.*=10'", text, describe_range(range));
  }
  static RateScale parse(const std::string& text) { return read(text).value(); }
  static std::string text(const RateScale& scale) {
    return fmt::format("{}={}", scale.pattern, number_text(scale.factor));
  }

 private:
  static std::optional<RateScale> read(const std::string& text) {
    const std::size_t equals = text.rfind('=');
    if (equals == std::string::npos || equals == 0) return std::nullopt;
    const std::optional<float> factor = parse_number(text.substr(equals + 1), range);
    if (!factor) return std::nullopt;
    return RateScale{text.substr(0, equals), *factor};
  }
};

struct IntervalForm {
  static constexpr Field::JsonType json_type = Field::JsonType::text;

  static std::string values() { return "an interval"; }
  static std::string validation_error(const std::string& text) {
    if (parse_checkpoint_interval(text)) return "";
    return fmt::format("'{}' is not an interval. Write steps (500), epochs (2epochs) or a time (10min, 90s, 1h)", text);
  }
  static CheckpointInterval parse(const std::string& text) { return parse_checkpoint_interval(text).value(); }
  static std::string text(const CheckpointInterval& interval) { return checkpoint_interval_text(interval); }
};

// One strength for brightness, contrast and saturation, or one for each.
struct ColorJitterForm {
  static constexpr Field::JsonType json_type = Field::JsonType::text;
  static constexpr NumberRange<float> range{0, 1};

  static std::string values() { return "one or three numbers from 0 to 1"; }
  static std::string validation_error(const std::string& text) {
    if (read(text)) return "";
    return fmt::format(
        "'{}' is not one or three numbers from 0 to 1. Write 0.4, or 0.4,0.4,0.2 for brightness, contrast and "
        "saturation",
        text);
  }
  static ColorJitter parse(const std::string& text) { return read(text).value(); }
  static std::string text(const ColorJitter& jitter) {
    const std::string brightness = number_text(jitter.brightness);
    if (jitter.contrast == jitter.brightness && jitter.saturation == jitter.brightness) return brightness;
    return fmt::format("{},{},{}", brightness, number_text(jitter.contrast), number_text(jitter.saturation));
  }

 private:
  static std::optional<ColorJitter> read(std::string_view text) {
    std::vector<float> strengths;
    while (strengths.size() < 4) {
      const std::size_t comma = text.find(',');
      const std::optional<float> strength = parse_number(text.substr(0, comma), range);
      if (!strength) return std::nullopt;
      strengths.push_back(*strength);
      if (comma == std::string_view::npos) break;
      text.remove_prefix(comma + 1);
    }
    if (strengths.size() == 1) return ColorJitter{strengths[0], strengths[0], strengths[0]};
    if (strengths.size() == 3) return ColorJitter{strengths[0], strengths[1], strengths[2]};
    return std::nullopt;
  }
};

// A ramp or "none", which overrides the ramp of a published recipe.
struct SizeRampForm {
  static constexpr Field::JsonType json_type = Field::JsonType::text;

  static std::string values() { return "a ramp, or none"; }
  static std::string validation_error(const std::string& text) {
    if (text == "none" || parse_size_ramp(text)) return "";
    return fmt::format("'{}' is not a ramp. Write FROM:START:END (160:65:76), with START no later than END, or none",
                       text);
  }
  static std::optional<SizeRamp> parse(const std::string& text) { return parse_size_ramp(text); }
  static std::string text(const std::optional<SizeRamp>& ramp) { return ramp ? size_ramp_text(*ramp) : "none"; }
};

// "powersgd:4", or "none".
struct CompressionForm {
  static constexpr Field::JsonType json_type = Field::JsonType::text;
  static constexpr NumberRange<int> ranks{1, 64};

  static std::string values() { return "a method and its rank from 1 to 64, or none"; }
  static std::string validation_error(const std::string& text) {
    if (read(text)) return "";
    return fmt::format("'{}' is not a compression. Write powersgd:RANK (powersgd:4) with a rank from {} to {}, or none",
                       text, ranks.least, ranks.most);
  }
  static int parse(const std::string& text) { return read(text).value(); }
  static std::string text(int rank) { return rank == 0 ? "none" : fmt::format("powersgd:{}", rank); }

 private:
  static std::optional<int> read(std::string_view text) {
    constexpr std::string_view method = "powersgd:";
    if (text == "none") return 0;
    return text.starts_with(method) ? parse_number(text.substr(method.size()), ranks) : std::nullopt;
  }
};

struct EarlyStopForm {
  static constexpr Field::JsonType json_type = Field::JsonType::text;

  static std::string values() { return "a rule"; }
  static std::string validation_error(const std::string& text) {
    if (parse_early_stop(text)) return "";
    return fmt::format(
        "'{}' is not METRIC:PATIENCE:MIN_DELTA. METRIC is test-accuracy, test-loss, validation-accuracy or "
        "validation-loss, PATIENCE a number of tests from 1 on, MIN_DELTA a number from 0 on "
        "(validation-accuracy:5:0.001)",
        text);
  }
  static EarlyStop parse(const std::string& text) { return parse_early_stop(text).value(); }
  static std::string text(const EarlyStop& rule) { return early_stop_text(rule); }
};

struct DurationForm {
  static constexpr Field::JsonType json_type = Field::JsonType::text;

  static std::string values() { return "a time"; }
  static std::string validation_error(const std::string& text) {
    return parse_duration(text) ? "" : fmt::format("'{}' is not a time. Write 90s, 10min or 1.5h", text);
  }
  static double parse(const std::string& text) { return parse_duration(text).value(); }
  static std::string text(double seconds) { return number_text(seconds) + "s"; }
};

// The location of a value in Settings: get(settings) returns a reference to it.
template <typename Get>
struct FieldPlace {
  Field::Part part;
  Get get;  // NOLINT(readability-identifier-naming): its type may be const
};

// A member of Recipe or RunOptions, or a nested member: of(&Recipe::batch, &BatchOptions::accumulate).
template <typename Part, typename First, typename... Inner>
auto of(First Part::*first, Inner... inner) {
  constexpr bool is_recipe = std::is_same_v<Part, Recipe>;
  static_assert(is_recipe || std::is_same_v<Part, RunOptions>);
  const auto get = [=](auto& settings) -> auto& {
    if constexpr (is_recipe) {
      return ((settings.recipe.*first).*....*inner);
    } else {
      return ((settings.run.*first).*....*inner);
    }
  };
  return FieldPlace<decltype(get)>{is_recipe ? Field::Part::recipe : Field::Part::run, get};
}

// The texts of a table entry.
struct FieldText {
  std::string name;
  FieldGroup group;
  std::string type_name;
  std::string help;
};

inline Field begin_field(FieldText words, Field::Part part, Field::Form form) {
  Field field;
  field.name = std::move(words.name);
  field.part = part;
  field.group = words.group;
  field.on_resume = part == Field::Part::recipe ? Field::OnResume::fixed : Field::OnResume::may_change;
  field.form = form;
  field.type_name = std::move(words.type_name);
  field.help = std::move(words.help);
  return field;
}

template <typename Value>
constexpr bool is_optional = false;
template <typename Value>
constexpr bool is_optional<std::optional<Value>> = true;

// A field with one value. An empty optional, text or path counts as unset; setting no text unsets it.
template <typename Get, typename Form>
Field one_value(FieldText words, const FieldPlace<Get>& place, const Form& form) {
  using Value = std::remove_cvref_t<decltype(place.get(std::declval<Settings&>()))>;
  constexpr bool is_text = std::is_same_v<Value, std::string> || std::is_same_v<Value, std::filesystem::path>;
  // A choice may have its own name for the empty optional.
  constexpr bool is_choice_of_optional =
      is_optional<Value> && std::is_same_v<decltype(form.parse(std::string())), Value>;
  constexpr bool unsets = is_optional<Value> && !is_choice_of_optional;
  Field field = begin_field(std::move(words), place.part, Field::Form::one);
  field.json_type = Form::json_type;
  field.values = form.values();
  field.may_be_unset = unsets || is_text;
  field.validation_error = [form](const std::string& text) { return form.validation_error(text); };
  field.set = [get = place.get, form](Settings& settings, const std::vector<std::string>& texts) {
    Value& value = get(settings);
    if (!texts.empty()) {
      value = form.parse(texts.front());
    } else if constexpr (unsets || is_text) {
      value = Value();
    }
  };
  field.texts = [get = place.get, form](const Settings& settings) -> std::vector<std::string> {
    const Value& value = get(settings);
    if constexpr (unsets) {
      return value ? std::vector<std::string>{form.text(*value)} : std::vector<std::string>();
    } else if constexpr (is_text) {
      return value.empty() ? std::vector<std::string>() : std::vector<std::string>{form.text(value)};
    } else {
      return {form.text(value)};
    }
  };
  return field;
}

template <typename Get, typename Form>
Field list_of_values(FieldText words, const FieldPlace<Get>& place, const Form& form) {
  Field field = begin_field(std::move(words), place.part, Field::Form::list);
  field.json_type = Form::json_type;
  field.values = form.values();
  field.validation_error = [form](const std::string& text) { return form.validation_error(text); };
  field.set = [get = place.get, form](Settings& settings, const std::vector<std::string>& texts) {
    auto& values = get(settings);
    values.clear();
    for (const std::string& text : texts) values.push_back(form.parse(text));
  };
  field.texts = [get = place.get, form](const Settings& settings) {
    std::vector<std::string> texts;
    for (const auto& value : get(settings)) texts.push_back(form.text(value));
    return texts;
  };
  return field;
}

// The value is `on` if the flag is given, otherwise `off`.
template <typename Get, typename Value>
Field flag(FieldText words, const FieldPlace<Get>& place, Value on, Value off) {
  Field field = begin_field(std::move(words), place.part, Field::Form::flag);
  field.json_type = Field::JsonType::flag;
  field.validation_error = [](const std::string&) { return std::string(); };
  field.set = [get = place.get, on, off](Settings& settings, const std::vector<std::string>& texts) {
    get(settings) = texts.empty() ? off : on;
  };
  field.texts = [get = place.get, on](const Settings& settings) {
    return get(settings) == on ? std::vector<std::string>{"true"} : std::vector<std::string>();
  };
  return field;
}

}  // namespace lockstep
