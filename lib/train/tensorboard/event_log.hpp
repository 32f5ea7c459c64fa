// What TensorBoard shows of a training (--tensorboard): a file of events for each attempt, which grows. A disk that is
// full, or a folder that somebody removed, ends no training: what cannot be written is kept, and written later.
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

// Of an object that goes into metrics.jsonl: "loss/training", "accuracy/test", "learning_rate", ... None of a kind that
// is not drawn.
std::vector<Scalar> scalars_of(const nlohmann::json& metrics);

// Shown once, as it is.
struct EventText {
  std::string tag;
  std::string text;
};

class EventLog {
 public:
  // `owner` ends the names of files, so that they show of which training they are; empty: that cannot be told.
  EventLog(std::filesystem::path folder, std::vector<EventText> texts, std::string owner = {})
      : folder_(std::move(folder)), texts_(std::move(texts)), owner_(std::move(owner)) {}

  // Before a training begins from its first step. TensorBoard takes all files of a folder for one training, and drops
  // what came before such a beginning. Throws Error(usage) where the folder has events of another owner.
  void require_own_folder() const;
  // Before the first step, when `steps` are done: makes folder and file. What an earlier attempt, or an earlier
  // training, told of later steps holds no more. Throws Error(usage) if the folder cannot be written to; of a disk that
  // is full it warns.
  void begin(std::int64_t steps);
  // An object that goes into metrics.jsonl. Warns of the first events that cannot be written, and says when all are.
  void append(const nlohmann::json& metrics);
  // Tries again to write what is left over. Returns whether nothing is.
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
  std::string left_;  // whole records
  bool has_warned_ = false;
};

}  // namespace lockstep
