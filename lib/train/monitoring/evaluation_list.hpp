// The evaluations of a training's checkpoints by another program. The file is next to the training's folder, which only
// the training writes to. apps/files.md documents each field.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "dataset/loading/augment.hpp"
#include "device/tensor.hpp"
#include "recipe/test_augmentation.hpp"
#include "train/evaluation/evaluation.hpp"

namespace lockstep {

// What the results of an evaluation depend on, except for rounding that differs between devices.
struct EvaluationInputs {
  std::int64_t step = 0;
  std::string weights_hash;
  std::string data_hash = {};  // of the split's manifest
  ImageRules rules = {};
  TestTimeAugmentation augmentation = TestTimeAugmentation::plain;
  DType precision = DType::f32;
  bool tf32 = false;
};

class EvaluationList {
 public:
  // "/home/ada/runs/r20.evaluations.test.jsonl"
  static std::filesystem::path file_of(const std::filesystem::path& folder, const std::string& split);

  // Reads the entries of an earlier run. Throws Error(usage) if the file contains something else, and as read_file().
  explicit EvaluationList(std::filesystem::path file);

  // Whether an evaluation with the same inputs is in the list. Lines of earlier versions lack inputs and do not count.
  bool has(const EvaluationInputs& inputs) const;
  // Appends a line, and keeps the lines of other processes. If the disk is full, warns once, keeps the line, and writes
  // it with the next one. Throws Error(usage) if the file cannot be written for another reason.
  void add(const EvaluationInputs& inputs, std::int64_t epoch, const Evaluation& evaluation);
  // Call at the end. Throws Error if lines could not be written.
  void finish();
  const std::filesystem::path& file() const { return file_; }

 private:
  bool flush();

  std::filesystem::path file_;
  std::vector<nlohmann::json> entries_;
  std::string left_;  // text to append
  std::int64_t lines_left_ = 0;
  bool has_warned_ = false;
};

}  // namespace lockstep
