#include "train/evaluation/evaluation_json.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/io/file.hpp"
#include "device/precision.hpp"
#include "files/result_file.hpp"

namespace lockstep {
namespace {

// As json_text() writes it. A line of metrics.jsonl also begins with an accuracy.
bool begins_as_evaluation(std::string_view start) {
  constexpr std::string_view first = "{\"accuracy\":";
  if (!start.starts_with(first)) return false;
  start.remove_prefix(first.size());
  start.remove_prefix(std::min(start.size(), start.find_first_not_of("0123456789.e+-")));
  return start.starts_with(",\"classes\":[");
}

nlohmann::json or_null(const std::string& text) { return text.empty() ? nlohmann::json() : nlohmann::json(text); }

}  // namespace

nlohmann::json confusion_json(const Evaluation& evaluation) {
  constexpr std::int64_t largest_matrix = 2000;
  const bool is_matrix = evaluation.classes <= largest_matrix;
  const auto classes = static_cast<std::size_t>(evaluation.classes);
  const nlohmann::json empty =
      is_matrix ? nlohmann::json(std::vector<std::int64_t>(classes)) : nlohmann::json::object();
  std::vector<nlohmann::json> rows(classes, empty);
  for (const auto& [pair, samples] : evaluation.confusion) {
    nlohmann::json& row = rows[static_cast<std::size_t>(pair.first)];
    (is_matrix ? row[static_cast<std::size_t>(pair.second)] : row[std::to_string(pair.second)]) = samples;
  }
  return rows;
}

nlohmann::json evaluation_json(const Evaluation& evaluation, const EvaluatedModel& model, const EvaluatedData& data,
                               const Session& session) {
  const std::optional<double> plain = evaluation.plain_accuracy();
  const std::int64_t shorter_side = data.rules.shorter_side.value_or(0);
  return {{"accuracy", evaluation.accuracy()},
          {"classes", data.manifest.classes},
          {"command_line", session.invocation.command_line},
          {"commit", or_null(session.invocation.commit)},
          {"confusion", confusion_json(evaluation)},
          {"correct", evaluation.correct()},
          {"data", data.manifest.name},
          {"data_hash", data.manifest.root_hash},
          {"device", session.device().description()},
          {"image_size", {data.rules.size.height, data.rules.size.width}},
          {"in_top5", evaluation.in_top5},
          {"loss", evaluation.loss()},
          {"model", model.name},
          {"model_file", model.file.string()},
          {"plain_accuracy", plain ? nlohmann::json(*plain) : nlohmann::json()},
          {"precision", precision_name(session.device().precision())},
          {"samples", evaluation.samples},
          {"shorter_side", shorter_side == 0 ? nlohmann::json() : nlohmann::json(shorter_side)},
          {"split", split_name(data.split)},
          {"test_augment", test_augmentation_name(evaluation.augmentation)},
          {"test_flip", evaluation.augmentation != TestTimeAugmentation::plain},
          {"top5", evaluation.top5()},
          {"weights_hash", model.weights_hash}};
}

void require_place_for_evaluation(const std::filesystem::path& file) {
  require_place_for_result(file, {"result of evaluate", begins_as_evaluation}, "--json");
}

}  // namespace lockstep
