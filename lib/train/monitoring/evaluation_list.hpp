// The evaluations of a training's checkpoints by another program. The file is next to the training's folder, which only
// the training writes to. apps/files.md documents each field.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "train/evaluation/evaluation.hpp"

namespace lockstep {

class EvaluationList {
 public:
  // "runs/r20.evaluations.test.jsonl"
  static std::filesystem::path file_of(const std::filesystem::path& folder, const std::string& split);

  // Reads the entries of an earlier run. Throws Error(usage) if the file contains something else, and as read_file().
  explicit EvaluationList(std::filesystem::path file);

  // Whether the weights with this hash were evaluated at this step.
  bool has(std::int64_t step, const std::string& weights_hash) const;
  // Throws as write_file_atomically().
  void add(std::int64_t step, std::int64_t epoch, const std::string& weights_hash, const Evaluation& evaluation);
  const std::filesystem::path& file() const { return file_; }

 private:
  struct Entry {
    std::int64_t step;
    std::string weights_hash;
  };
  // std::nullopt if add() did not write the line.
  static std::optional<Entry> entry_in(const std::string& line);

  std::filesystem::path file_;
  std::vector<Entry> entries_;
  std::string text_;
};

}  // namespace lockstep
