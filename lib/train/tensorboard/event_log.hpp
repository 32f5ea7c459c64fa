// TensorBoard output (--tensorboard): one event file per attempt. A full disk or a removed folder does not stop the
// training. Events that cannot be written are kept in memory and written later.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/io/descriptor.hpp"
#include "train/tensorboard/event.hpp"

namespace lockstep {

// Scalars of an object in metrics.jsonl: "loss/training", "accuracy/test", "learning_rate", ... Empty for kinds that
// are not shown.
std::vector<Scalar> scalars_of(const nlohmann::json& metrics);

// A text shown once, unchanged.
struct EventText {
  std::string tag;
  std::string text;
};

class EventLog {
 public:
  // `owner` becomes the suffix of file names and identifies the training; empty: unknown.
  EventLog(std::filesystem::path folder, std::vector<EventText> texts, std::string owner = {})
      : folder_(std::move(folder)), texts_(std::move(texts)), owner_(std::move(owner)) {}

  // Call before a training whose earlier attempts have no events in the folder. TensorBoard treats all files of a
  // folder as one training, and drops earlier events at a restart. Throws Error(usage) if the folder has events of
  // another owner.
  void require_own_folder() const;
  // Call before the first step. `steps` is the number of steps done. Creates the folder and a file, and invalidates
  // earlier events of later steps. Throws Error(usage) if the folder is not writable; if the disk is full it only
  // warns.
  void begin(std::int64_t steps);
  // Appends an object of metrics.jsonl. Warns about the first events that cannot be written, and logs when all are
  // written.
  void append(const nlohmann::json& metrics);
  // Retries the remaining events. Returns whether all are written.
  bool flush();
  const std::filesystem::path& path() const { return path_; }  // of the file; empty before begin()

 private:
  bool is_there() const;
  void open_new(double time);

  std::filesystem::path folder_;
  std::vector<EventText> texts_;
  std::string owner_;
  std::filesystem::path path_;
  std::unique_ptr<Descriptor> file_;
  std::string left_;  // remaining records
  bool has_warned_ = false;
};

}  // namespace lockstep
