// What a program that scores the checkpoints of a training has found so far: a file beside the training's folder, which
// is the training's own. Field by field in apps/files.md.
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

  // Reads what an earlier run has left. Throws Error(usage) where the file holds something else, and as read_file().
  explicit EvaluationList(std::filesystem::path file);

  // Whether the weights of this hash were scored after so many steps.
  bool has(std::int64_t step, const std::string& weights_hash) const;
  // Throws as write_file_atomically().
  void add(std::int64_t step, std::int64_t epoch, const std::string& weights_hash, const Evaluation& evaluation);
  const std::filesystem::path& file() const { return file_; }

 private:
  struct Entry {
    std::int64_t step;
    std::string weights_hash;
  };
  // Nothing where the line is not one of add()'s.
  static std::optional<Entry> entry_in(const std::string& line);

  std::filesystem::path file_;
  std::vector<Entry> entries_;
  std::string text_;
};

}  // namespace lockstep
