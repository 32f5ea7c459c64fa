// One option of a training: its name, help, text and JSON forms, and whether it may change on a resume.
// recipe/fields.hpp has the table of all options.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "recipe/run_options.hpp"

namespace lockstep {

// Options that programs declare together.
enum class FieldGroup : std::uint8_t {
  data,
  staging,
  augmentation,
  resizing,
  testing,
  model,
  optimizer,
  schedule,
  device,
  batch,
  sync,
  reduction,
  output,
  checkpoints,
  monitoring
};
// The heading of the group in --help: "Data". Several groups may share one.
const char* heading_of(FieldGroup group);

struct Field {
  enum class Part : std::uint8_t { recipe, run };
  // What a resume does if the value differs. Every field of the recipe is fixed unless its entry states why not.
  enum class OnResume : std::uint8_t { fixed, may_change };
  enum class Form : std::uint8_t { flag, one, list };
  enum class JsonType : std::uint8_t { flag, whole_number, number, text };

  std::string name;  // option name without dashes, and JSON key: "global-batch"
  Part part = Part::run;
  FieldGroup group = FieldGroup::data;
  OnResume on_resume = OnResume::may_change;
  Form form = Form::one;
  JsonType json_type = JsonType::text;
  std::string type_name;  // name of the value in --help: "SAMPLES"; empty for a flag
  std::string help;
  std::string values;                // description of valid values: "from 1 to 256"; empty: any text
  std::string also;                  // alternative name of the option
  std::string excludes;              // an option that sets the same thing and cannot be combined with this one
  std::string needs;                 // an option that must be set, or this one has no effect
  std::string chooser;               // the option that decides whether this one is used; empty: always used
  std::vector<std::string> readers;  // the values of `chooser` for which this option is used
  char separator = '\0';             // of several values in one word; '\0': each word is one value
  bool is_required = false;          // must be given to start a training
  bool may_be_unset = false;
  bool is_recorded_unset = true;  // in checkpoints; false: they have the field only if it is set
  bool is_common = false;         // in the short --help

  // Why a text is invalid; empty if it is valid.
  std::function<std::string(const std::string& text)> validation_error;
  // Sets the value. Each text must be valid by validation_error(); no text means unset. A flag has the text "true" or
  // none.
  std::function<void(Settings&, const std::vector<std::string>& texts)> set;
  // The value in the form that set() takes, with the fewest digits that identify a number.
  std::function<std::vector<std::string>(const Settings&)> texts;
};

// The option that switches a flag of the recipe off: "no-whiten", "decay-norm" for "no-decay-norm". Empty for other
// fields: published recipes set no flag of the run.
std::string off_option(const Field& field);

// The value as JSON: true or false, a decimal number, a string or a list; null if unset.
nlohmann::json json_of(const Field& field, const Settings& settings);
// Sets the field from the output of json_of(), or from JSON that a user wrote. Returns an error message, or an empty
// string on success.
std::string set_from_json(const Field& field, Settings& settings, const nlohmann::json& value);

}  // namespace lockstep
