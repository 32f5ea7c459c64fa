// A training as its output folder tells of it: summary.json, and the lines of metrics.jsonl. The files are of unknown
// origin, and metrics.jsonl may be half written at this moment.
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
  double epochs = 0;  // done, with their fraction
  double steps = 1;   // that it is of: of kind `training` those since the line before, else one
  nlohmann::json fields;

  // A finite number of a size that can be drawn; nothing where there is none of that name.
  std::optional<double> number(std::string_view field) const;
};

struct RunRecord {
  std::string name;        // the folder as it was given
  nlohmann::json summary;  // an object
  std::string state;       // in words
  std::vector<MetricsLine> training;
  std::vector<MetricsLine> tests;
  std::vector<MetricsLine> validations;
  struct Interruption {
    std::string state;  // how the attempt ended
    std::int64_t step;  // that the next one went on from
    std::string resumed;
    double epochs;              // done then
    std::string ranks, device;  // of the attempt that ended; "" where an earlier version wrote it
  };
  std::vector<Interruption> interruptions;

  // Of the summary: as text, however it is written there; "" where it is absent or null.
  std::string text(std::string_view field) const;
  std::optional<double> number(std::string_view field) const;
};

// Lines of other kinds are passed over, and so is a last one without its end. Throws Error(usage) where `folder` holds
// no training, Error(bad_data) naming file and line where they are damaged.
RunRecord read_run(const std::filesystem::path& folder);

// A value of unknown origin as text, without quotes and brackets: numbers with decimals in at most six digits, members
// of a list one after another, those of an object behind their names; "" for null.
std::string value_text(const nlohmann::json& value);

}  // namespace lockstep
