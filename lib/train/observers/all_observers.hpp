// The observers of a training, in the order in which the loop calls them.
#pragma once

#include <memory>
#include <vector>

#include "train/loop/observer.hpp"
#include "train/observers/metrics_stream.hpp"
#include "train/opening/opened_training.hpp"

namespace lockstep {

struct AllObservers {
  std::unique_ptr<MetricsStream> stream;  // what they report
  std::vector<std::unique_ptr<TrainingObserver>> in_order;
};

// Call on every rank when nothing can prevent the training from starting any more: on rank 0, files in its folders
// change from here on. Starts `counters`, which outlive the result, as does `training`.
AllObservers begin_observers(OpenedTraining& training, TrainingCounters& counters);

}  // namespace lockstep
