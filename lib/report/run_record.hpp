// A training as recorded in its output folder: summary.json and the lines of metrics.jsonl. The files are untrusted,
// and metrics.jsonl may still be growing.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

// A line of metrics.jsonl.
struct MetricsLine {
  double epochs = 0;  // completed, with a fraction
  double steps = 1;   // steps that it covers: since the previous line for kind `training`, else 1
  nlohmann::json fields;

  // A finite number that can be plotted; nullopt if there is no such field.
  std::optional<double> number(std::string_view field) const;
};

struct RunRecord {
  std::string name;        // the folder as the user gave it
  nlohmann::json summary;  // an object
  std::string state;       // human-readable
  std::vector<MetricsLine> training;
  std::vector<MetricsLine> tests;
  std::vector<MetricsLine> validations;
  struct Interruption {
    std::string state;  // how the attempt ended
    std::int64_t step;  // from which the next attempt resumed
    std::string resumed;
    double epochs;              // completed at that step
    std::string ranks, device;  // of the attempt that ended; "" if an earlier version did not write it
  };
  std::vector<Interruption> interruptions;

  // A field of the summary as text, whatever its JSON type; "" if it is absent or null.
  std::string text(std::string_view field) const;
  std::optional<double> number(std::string_view field) const;
};

// Skips lines of other kinds and an incomplete last line. Throws Error(usage) if `folder` contains no training, and
// Error(bad_data) that names the file and the line if the files are damaged.
RunRecord read_run(const std::filesystem::path& folder);

// An untrusted value as text, without quotes and brackets; "" for null. Numbers with decimals have at most six digits.
// List elements are listed in order, object members after their names.
std::string value_text(const nlohmann::json& value);

}  // namespace lockstep
