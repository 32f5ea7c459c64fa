#include "train/monitoring/evaluation_list.hpp"

#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <sstream>
#include <utility>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/io/append.hpp"
#include "base/io/file.hpp"
#include "base/log.hpp"
#include "base/text/counted.hpp"
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
  const fs::path whole = fs::weakly_canonical(fs::absolute(folder));  // "." has no name of its own
  const fs::path name = whole.has_filename() ? whole : whole.parent_path();
  return name.string() + ".evaluations." + split + ".jsonl";
}

EvaluationList::EvaluationList(fs::path file) : file_(std::move(file)) {
  if (is_absent(file_)) return;
  std::istringstream text(read_file(file_, limit_bytes));
  for (std::string line; std::getline(text, line);) {
    nlohmann::json entry = try_parse_json(line);
    require(is_entry(entry), Failure::usage, "'{}' exists and is not a list of evaluations. Move it elsewhere.",
            file_.string());
    entries_.push_back(std::move(entry));
    if (text.eof()) left_ = "\n";  // an editor left out the last newline
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
  left_ += json_text(entry) + '\n';
  ++lines_left_;
  entries_.push_back(std::move(entry));
  flush();
}

bool EvaluationList::flush() {
  std::string reason;
  try {
    const Descriptor file = open_to_append(file_, "--follow");
    // Another evaluate may append to the same list. Without locks in the file system, O_APPEND alone keeps them apart.
    ::flock(file, LOCK_EX);
    if (!append_whole(file, left_)) {
      reason = fmt::format("cannot write '{}': {}.", file_.string(), system_error_message(errno));
    }
  } catch (const Error& error) {
    if (error.failure() == Failure::usage) throw;
    reason = error.what();
  }
  if (!reason.empty() && !std::exchange(has_warned_, true)) {
    log::warning("{} The evaluation continues. Its results are kept in memory until they can be written.", reason);
  }
  if (!reason.empty()) return false;
  if (std::exchange(has_warned_, false)) log::info("'{}' is complete again", file_.string());
  left_.clear();
  lines_left_ = 0;
  return true;
}

void EvaluationList::finish() {
  require(lines_left_ == 0 || flush(), Failure::other,
          "{} of '{}' could not be written. Free some space there. The same command evaluates these checkpoints again.",
          counted(lines_left_, "line"), file_.string());
}

}  // namespace lockstep
