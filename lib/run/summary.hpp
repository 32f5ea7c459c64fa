// summary.json: description and status of a training, from its first step on. apps/files.md documents each field.
//
// The state is `running` also after a kill, and numbers are those of the last test: see training_status.hpp.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "run/run_state.hpp"

namespace lockstep {

// An attempt that did not end the training, and that another attempt resumed.
struct Interruption {
  RunState end = RunState::running;   // how it ended; running: it was killed (name_of_end())
  std::int64_t step = 0;              // steps done when the next attempt resumed
  std::int64_t resumed = 0;           // when that was, in seconds since 1970
  std::optional<std::int64_t> ranks;  // of the attempt that ended; unset in files of earlier versions
  std::string device;                 // likewise
};

// A value is unset, or empty, if it is null or absent, as in files of other versions, or is damaged (run_file.hpp).
// Texts may be unprintable.
struct Summary {
  std::optional<RunState> state;               // unset: damaged, or written by an early version
  std::optional<std::int64_t> started, ended;  // of the first and of the last attempt, in seconds since 1970
  std::vector<Interruption> interruptions;     // oldest first, without those that lack state, step or time
  std::vector<std::string> command_line;       // without the launcher
  std::string model, data;                     // the network's name; the data set's name
  std::string device, precision, weights_hash;
  std::optional<std::int64_t> step, steps;  // done; in the whole training
  std::optional<std::int64_t> epochs;       // in the whole training
  std::optional<std::int64_t> steps_per_epoch;
  std::optional<std::int64_t> ranks, global_batch;
  std::optional<std::int64_t> nodes;          // on which the ranks run
  std::optional<double> samples_per_second;   // all ranks and attempts, without tests
  std::optional<double> test_accuracy;        // of the last test, top-1, 0 to 1
  std::optional<double> validation_accuracy;  // likewise
  std::optional<double> best_accuracy;        // with the two that follow
  std::optional<std::int64_t> best_step;      // 1 or later
  std::string best_split;                     // "test" or "validation"
  std::string note;                           // --note, --tag
  std::vector<std::string> tags;
  std::filesystem::path output, checkpoints;  // --output, --checkpoints: relative to the training's working directory
  nlohmann::json fields = nlohmann::json::object();  // all of them, as they are in the file
};

// Nothing if `text` is not a JSON object, or is nested deeper than 16 levels.
std::optional<Summary> parse_summary(std::string_view text);
// That of the training in `folder`. Nothing also if the file cannot be read (run_file.hpp), or has more than 16 MiB.
std::optional<Summary> read_summary(const std::filesystem::path& folder);

}  // namespace lockstep
