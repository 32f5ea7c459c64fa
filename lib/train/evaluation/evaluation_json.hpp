// Evaluation results as JSON. apps/files.md documents each field.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "backend/session.hpp"
#include "dataset/loading/augment.hpp"
#include "dataset/shards/manifest.hpp"
#include "dataset/split.hpp"
#include "train/evaluation/evaluation.hpp"

namespace lockstep {

// The model that was evaluated.
struct EvaluatedModel {
  std::filesystem::path file;
  std::string name;
  std::string weights_hash;
};
struct EvaluatedData {
  const Manifest& manifest;
  Split split;
  const ImageRules& rules;
};

// A row for each class: counts by predicted class or, with more than 2,000 classes, {"class": count} without zeros.
nlohmann::json confusion_json(const Evaluation& evaluation);

nlohmann::json evaluation_json(const Evaluation& evaluation, const EvaluatedModel& model, const EvaluatedData& data,
                               const Session& session);

// Call before the evaluation. Throws as require_place_for_result().
void require_place_for_evaluation(const std::filesystem::path& file);

}  // namespace lockstep
