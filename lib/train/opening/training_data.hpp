// What a training learns from and is tested on, and for how long.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "comm/communicator.hpp"
#include "dataset/dataset.hpp"
#include "dataset/loading/loader.hpp"
#include "files/checkpoint/checkpoint.hpp"
#include "recipe/run_options.hpp"
#include "runtime/stop/stop_agreement.hpp"
#include "train/loop/training_length.hpp"

namespace lockstep {

struct TrainingData {
  LoaderShare share;
  int trainers = 1;  // the ranks with samples, which are the first ones; or programs of their own
  std::unique_ptr<Dataset> train;
  std::unique_ptr<Dataset> test;
  std::unique_ptr<Dataset> validation;  // null: the data have no validation split
  ImageRules test_rules;
  TrainingLength length;
  LrSchedule schedule;  // of the updates, of which a step may have several

  std::vector<double> rates(std::int64_t step) const;             // of the step's updates
  const Manifest& manifest() const { return train->manifest(); }  // all splits have its classes and normalization
};

// Collective. Checks that ranks have the same data, copies them to the node's disk if `run` asks for it, and opens all
// splits. `earlier`: the checkpoint to resume from, whose batch is kept; null: a new training. Throws
// AgreedError: as StopAgreement::end_start_if_asked(), usage if the recipe does not fit the data or the number of
// ranks, bad_data if splits do not fit each other, and as Dataset.
TrainingData open_data(const Communicator& world, const Recipe& recipe, const RunOptions& run,
                       const Checkpoint* earlier, const StopAgreement& stops);

}  // namespace lockstep
