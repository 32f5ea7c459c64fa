// One option of a training: the one place that knows its name, its help, its forms as text and as JSON, and whether it
// may change when a training goes on. The table of all of them is in recipe/fields.hpp.
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
  reduction,
  output,
  checkpoints,
  monitoring
};
// The heading of the group in --help: "Data". Several groups may share one.
const char* heading_of(FieldGroup group);

struct Field {
  enum class Part : std::uint8_t { recipe, run };
  // What a resume does where the value is another one. Every field of the recipe is fixed unless its entry says why
  // not.
  enum class OnResume : std::uint8_t { fixed, may_change };
  enum class Form : std::uint8_t { flag, one, list };
  enum class JsonType : std::uint8_t { flag, whole_number, number, text };

  std::string name;  // of the option without dashes, and the key in JSON: "global-batch"
  Part part = Part::run;
  FieldGroup group = FieldGroup::data;
  OnResume on_resume = OnResume::may_change;
  Form form = Form::one;
  JsonType json_type = JsonType::text;
  std::string type_name;  // what --help calls the value: "SAMPLES"; empty for a flag
  std::string help;
  std::string values;                // what it may be, in words: "from 1 to 256"; empty: any text
  std::string also;                  // a second name of the option
  std::string excludes;              // the option that says the same in another way
  std::string needs;                 // the option without which this one says nothing
  std::string chooser;               // the option whose value decides whether this one is read; empty: it always is
  std::vector<std::string> readers;  // those of its values that read it
  bool is_required = false;          // to be stated by whoever starts a training
  bool may_be_unset = false;
  bool is_common = false;  // in the short --help

  // What is wrong with a text; empty: nothing.
  std::function<std::string(const std::string& text)> objection;
  // Each text is one that objection() lets pass; none: not stated. A flag has one text, "true", or none.
  std::function<void(Settings&, const std::vector<std::string>& texts)> set;
  // As set() takes them, with as few digits as name a number.
  std::function<std::vector<std::string>(const Settings&)> texts;
};

// The value as a JSON reader expects it: true or false, a number in plain decimals, a text or a list; null where none
// is stated.
nlohmann::json json_of(const Field& field, const Settings& settings);
// What json_of() gave, or a person wrote. Returns what is wrong with it; empty: it is set.
std::string set_from_json(const Field& field, Settings& settings, const nlohmann::json& value);

}  // namespace lockstep
