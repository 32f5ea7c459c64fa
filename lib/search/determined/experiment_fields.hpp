// The fields of Determined's experiment files, and what each one is here.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/text/choice.hpp"

namespace lockstep {

enum class ExperimentTreatment : std::uint8_t {
  moved,    // `here` is the field of a search file with the same values
  option,   // `here` is an option of trainings with the same values
  read,     // `here` is the field or the option; experiment_file.cpp converts the value
  ignored,  // `here` is a sentence about what takes its place
  refused,  // `here` is a sentence about what to do
};

struct ExperimentField {
  std::string_view there;  // "searcher.max_trials"
  ExperimentTreatment treatment = ExperimentTreatment::ignored;
  std::string_view here;
};

// All fields, except hyperparameters without an entry: those have the name of an option of trainings.
std::span<const ExperimentField> experiment_fields();
// Null if there is no such field.
const ExperimentField* find_experiment_field(std::string_view there);
// Whether there are fields below it: true for "searcher".
bool is_experiment_section(std::string_view there);

// Names of metrics in Determined, with '_' between words. Determined measures them on the validation data.
struct ExperimentMetric {
  std::string_view here;
  bool is_loss = false;   // smaller is better
  bool is_error = false;  // 1 - accuracy
};
inline constexpr std::array<Choice<ExperimentMetric>, 15> experiment_metrics{
    {{"validation_accuracy", {"validation-accuracy"}},
     {"val_accuracy", {"validation-accuracy"}},
     {"val_acc", {"validation-accuracy"}},
     {"eval_accuracy", {"validation-accuracy"}},
     {"accuracy", {"validation-accuracy"}},
     {"validation_loss", {"validation-loss", true}},
     {"val_loss", {"validation-loss", true}},
     {"eval_loss", {"validation-loss", true}},
     {"loss", {"validation-loss", true}},
     {"validation_error", {"validation-accuracy", false, true}},
     {"val_error", {"validation-accuracy", false, true}},
     {"error_rate", {"validation-accuracy", false, true}},
     {"test_accuracy", {"test-accuracy"}},
     {"test_acc", {"test-accuracy"}},
     {"test_loss", {"test-loss", true}}}};

// Levels of mixed precision. O3 has weights of 16 bits, which trainings here do not have.
inline constexpr std::array<Choice<std::string_view>, 3> experiment_precisions{
    {{"O0", "fp32"}, {"O1", "fp16"}, {"O2", "fp16"}}};

}  // namespace lockstep
