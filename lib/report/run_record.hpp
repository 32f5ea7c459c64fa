// A training as its output folder records it, for pages. The files are untrusted, and metrics.jsonl may still be
// growing.
#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "network/graph.hpp"
#include "report/page/plot.hpp"
#include "run/metrics.hpp"
#include "run/summary.hpp"

namespace lockstep {

// A metric of a program with a training loop of its own (launch/custom_loop.hpp), over steps.
struct OwnMetric {
  std::vector<PlotPoint> training, validation;
};

struct RunRecord {
  std::string name;            // the folder as the user gave it
  Summary summary;             // of a running or killed training, `fields` has the newer numbers of metrics.jsonl
  std::string state;           // human-readable
  double steps_per_epoch = 1;  // of a full epoch
  std::vector<MetricsLine> training, tests, validations;
  std::map<std::string, OwnMetric> own_metrics;  // by name, at most 16; of a training loop of its own
  std::vector<TrainerLine> trainers;             // in order
  std::optional<NetworkGraph> network = {};      // if known; read_run() leaves it empty

  // A field of the summary as text, whatever its JSON type; "" if it is absent or null.
  std::string text(std::string_view field) const;
  std::optional<double> number(std::string_view field) const;  // see run/run_file.hpp
};

// Skips lines of other kinds and an incomplete last line. Throws Error(usage) if `folder` contains no training, and
// Error(bad_data) that names the file and the line if the files are damaged.
RunRecord read_run(const std::filesystem::path& folder);

// The network of the model that model_of_run() finds, for the images of the training. Nothing if there is no such
// model, or if it cannot be read.
std::optional<NetworkGraph> network_of_run(const std::filesystem::path& folder);

// An untrusted value as text, without quotes and brackets; "" for null. Numbers with decimals have at most six digits.
// List elements are listed in order, object members after their names.
std::string value_text(const nlohmann::json& value);

}  // namespace lockstep
