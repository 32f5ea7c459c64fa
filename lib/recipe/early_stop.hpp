// Early stopping: a training ends when the result of its tests no longer improves, as in Keras and PyTorch Lightning.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "dataset/split.hpp"

namespace lockstep {

enum class TestMetric : std::uint8_t { accuracy, loss };

struct EarlyStop {
  Split split = Split::test;                 // test or validation
  TestMetric metric = TestMetric::accuracy;  // an accuracy improves upwards, a loss downwards
  std::int64_t patience = 1;                 // successive tests without improvement that end the training
  double min_delta = 0;                      // only a larger change is an improvement; accuracies are fractions
  bool operator==(const EarlyStop&) const = default;
};

// Parses "validation-loss:3:0.01" (METRIC:PATIENCE:MIN_DELTA). std::nullopt if invalid.
std::optional<EarlyStop> parse_early_stop(std::string_view text);
std::string early_stop_text(const EarlyStop& rule);
// "validation-loss"
std::string metric_name(const EarlyStop& rule);

}  // namespace lockstep
