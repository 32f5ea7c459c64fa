// summary.json: description and status of a training, from its first step on. apps/files.md documents each field.
//
// The state is `running` also after a kill, and numbers may be older than those in metrics.jsonl: training_status.hpp
// has both corrected.
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

// An attempt that another attempt resumed: it did not end the training, or was done and is continued.
struct Interruption {
  RunState end = RunState::running;        // how it ended; running: it was killed (name_of_end())
  std::int64_t step = 0;                   // steps done when the next attempt resumed
  std::int64_t resumed = 0;                // when that was, in seconds since 1970
  std::optional<std::int64_t> ranks;       // of the attempt that ended; unset in files of earlier versions
  std::string device;                      // likewise
  std::optional<std::int64_t> steps = {};  // likewise; of the whole training, as that attempt planned it
};

// "done (planned steps: 400)"
std::string describe_end(const Interruption& attempt);

// The rule of --early-stop that ended a training.
struct EarlyStopEnd {
  std::string metric;      // "validation-loss"
  std::int64_t tests = 0;  // successive ones without improvement
};

// A value is unset, or empty, if it is null or absent, as in files of other versions, or is damaged (run_file.hpp).
// Texts may be unprintable.
struct Summary {
  std::optional<RunState> state;                        // unset: damaged, or written by an early version
  std::optional<std::int64_t> started, ended;           // of the first and of the last attempt, in seconds since 1970
  std::vector<Interruption> interruptions;              // oldest first, without those that lack state, step or time
  std::vector<std::string> command_line;                // without the launcher
  std::string model, data;                              // the network's name; the data set's name
  std::string device, precision;                        // descriptions
  std::string weights_hash;                             // of model.h5; empty while running
  std::optional<std::int64_t> step, steps;              // done; in the whole training
  std::optional<std::int64_t> epochs, steps_per_epoch;  // of the whole training; of a full epoch
  std::optional<std::int64_t> ranks, nodes;             // that the last attempt used
  std::optional<std::int64_t> global_batch;             // samples per update, over all ranks
  std::optional<double> samples_per_second;             // all ranks and attempts, without tests
  std::optional<double> test_accuracy, validation_accuracy;  // last ones, top-1, 0 to 1
  std::optional<double> best_accuracy;                       // best so far, of the EMA with --ema
  std::optional<std::int64_t> best_step;                     // its step
  std::string best_split;                                    // its split: "test" or "validation"
  bool keeps_ema = false;                                    // --ema
  std::optional<EarlyStopEnd> early_stop;                    // unset: it has ended no training
  std::string note;                                          // --note
  std::vector<std::string> tags;                             // --tag
  std::string resume;                                        // --resume
  std::filesystem::path output, checkpoints;  // --output, --checkpoints: relative to the training's working directory
  nlohmann::json fields = nlohmann::json::object();  // all of them, as they are in the file
};

// Nothing if `text` is not a JSON object, or is nested deeper than 16 levels.
std::optional<Summary> parse_summary(std::string_view text);
// That of the training in `folder`. Nothing also if the file cannot be read (run_file.hpp), or has more than 16 MiB.
std::optional<Summary> read_summary(const std::filesystem::path& folder);

}  // namespace lockstep
