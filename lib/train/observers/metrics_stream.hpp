// The objects that a training reports. Each is a line of metrics.jsonl, and an event for TensorBoard.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "files/folder/folder_lock.hpp"
#include "train/loop/observer.hpp"
#include "train/observers/metrics_log.hpp"
#include "train/tensorboard/event_log.hpp"

namespace lockstep {

class MetricsStream {
 public:
  // Opens metrics.jsonl in the folder of `output`, which outlives this. Null: no file; no events.
  MetricsStream(FolderLock* output, std::unique_ptr<EventLog> events);

  // Appends an object of this `kind`, about `training` after `steps` steps: `fields`, and what every object has.
  void append(const char* kind, const TrainingView& training, std::int64_t steps, nlohmann::json fields);
  // Call at the end of a completed training. Throws Error if lines of metrics.jsonl could not be written.
  void finish();

 private:
  std::unique_ptr<MetricsLog> lines_;
  std::unique_ptr<EventLog> events_;
};

}  // namespace lockstep
