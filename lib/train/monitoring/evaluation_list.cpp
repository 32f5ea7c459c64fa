#include "train/monitoring/evaluation_list.hpp"

#include <algorithm>
#include <optional>
#include <sstream>
#include <utility>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/text/json_text.hpp"
#include "device/precision.hpp"
#include "run/run_file.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t limit_bytes = 1 << 26;

nlohmann::json fields_of(const EvaluationInputs& inputs) {
  const std::int64_t shorter_side = inputs.rules.shorter_side.value_or(0);
  return {{"step", inputs.step},
          {"weights_hash", inputs.weights_hash},
          {"data_hash", inputs.data_hash},
          {"shorter_side", shorter_side == 0 ? nlohmann::json() : nlohmann::json(shorter_side)},
          {"decode", inputs.rules.decoding == Decoding::exact ? "exact" : "scaled"},
          {"test_augment", test_augmentation_name(inputs.augmentation)},
          {"precision", precision_name(inputs.precision)},
          {"tf32", inputs.tf32}};
}

// Whether add() of this version or of an earlier one wrote it.
bool is_entry(const nlohmann::json& entry) {
  return count_in(entry, "step").has_value() && !text_in(entry, "weights_hash").empty();
}

}  // namespace

fs::path EvaluationList::file_of(const fs::path& folder, const std::string& split) {
  const fs::path plain = folder.lexically_normal();
  const fs::path name = plain.has_filename() ? plain : plain.parent_path();
  return name.string() + ".evaluations." + split + ".jsonl";
}

EvaluationList::EvaluationList(fs::path file) : file_(std::move(file)) {
  if (is_absent(file_)) return;
  std::istringstream text(read_file(file_, limit_bytes));
  for (std::string line; std::getline(text, line);) {
    nlohmann::json entry = try_parse_json(line);
    // Each evaluation rewrites the whole file.
    require(is_entry(entry), Failure::usage,
            "'{}' exists and is not a list of evaluations. It would be overwritten. Move it elsewhere.",
            file_.string());
    entries_.push_back(std::move(entry));
    text_ += line + '\n';
  }
}

bool EvaluationList::has(const EvaluationInputs& inputs) const {
  const nlohmann::json fields = fields_of(inputs);
  return std::ranges::any_of(entries_, [&](const nlohmann::json& entry) {
    return std::ranges::all_of(fields.items(), [&](const auto& field) {
      const auto found = entry.find(field.key());
      return found != entry.end() && *found == field.value();
    });
  });
}

void EvaluationList::add(const EvaluationInputs& inputs, std::int64_t epoch, const Evaluation& evaluation) {
  nlohmann::json entry = fields_of(inputs);
  entry["epoch"] = epoch;
  entry["loss"] = evaluation.loss();
  entry["accuracy"] = evaluation.accuracy();
  entry["top5"] = evaluation.top5();
  entry["samples"] = evaluation.samples;
  entry["time"] = utc_time();
  if (const std::optional<double> plain = evaluation.plain_accuracy()) entry["plain_accuracy"] = *plain;
  text_ += json_text(entry) + '\n';
  write_file_atomically(file_, text_);
  entries_.push_back(std::move(entry));
}

}  // namespace lockstep
