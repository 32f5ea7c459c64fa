// A search as its space file describes it (apps/search.md).
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "recipe/early_stop.hpp"
#include "search/space/hyperparameter.hpp"
#include "search/space/retention.hpp"
#include "search/space/schedule.hpp"

namespace lockstep {

enum class LengthUnit : std::uint8_t { epochs, batches, records };
inline constexpr std::array<Choice<LengthUnit>, 3> length_units{
    {{"epochs", LengthUnit::epochs}, {"batches", LengthUnit::batches}, {"records", LengthUnit::records}}};
// "1 epoch", "24 batches"
std::string length_text(std::int64_t length, LengthUnit unit);

struct SearchMetric {
  Split split = Split::test;  // test or validation
  TestMetric value = TestMetric::accuracy;
  std::string name = {};  // of a custom training loop, which reports it as a validation metric; empty: of a training
  bool operator==(const SearchMetric&) const = default;
};
// "test-accuracy", or the name
std::string metric_name(const SearchMetric& metric);
// The names of the metrics of trainings, as a list.
std::string training_metrics();

class SpaceReader;
struct YamlValue;

struct Space {
  // Lines of the file, for messages.
  struct Lines {
    int program = 0;
    int arguments = 0;
    int metric = 0;
    int ranks = 0;
    int length = 0;
  };

  std::string file;  // as the user named it
  Lines lines;
  std::string program;
  std::vector<std::string> arguments;
  std::vector<Hyperparameter> hyperparameters;  // in file order; options are unique
  SearcherOptions searcher;
  std::vector<std::string> command;      // of the searcher 'custom'
  double answer_seconds = 600;           // that its program has for an answer
  LengthUnit unit = LengthUnit::epochs;  // of the searcher's lengths
  SearchMetric metric;
  bool smaller_is_better = false;
  std::int64_t ranks_per_trial = 1;
  std::int64_t max_restarts = 5;
  Retention kept;  // of the checkpoints, at the end
  std::uint64_t seed = 0;
  nlohmann::json content;             // of the file
  std::vector<std::string> warnings;  // for the user

  // Whether the program is a custom training loop (launch/custom_loop.hpp), whose length is counted in its steps.
  bool has_custom_loop() const { return !metric.name.empty(); }
};

// The space in the tree of a file. If something is wrong with it, the reader has refusals, and the space is incomplete.
// Throws Error(usage) if the tree is no map.
Space read_space(const YamlValue& root, SpaceReader& reader);
// The same for the content of such a file, as Space::content has it. Hyperparameters are in alphabetical order. Throws
// Error(usage) that names `file`.
Space space_of(const nlohmann::json& content, const std::string& file);

// The hyperparameters that are not constant, in file order.
std::vector<const Hyperparameter*> varied_parameters(const Space& space);

// The words of a trial's hyperparameters, in file order. Trials are numbered from 1.
std::vector<OptionWord> trial_settings(const Space& space, std::int64_t trial);

}  // namespace lockstep
