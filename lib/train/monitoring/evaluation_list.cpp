#include "train/monitoring/evaluation_list.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <utility>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/text/json_text.hpp"
#include "run/run_file.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t limit_bytes = 1 << 26;

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
    std::optional<Entry> entry = entry_in(line);
    // Each evaluation rewrites the whole file.
    require(entry.has_value(), Failure::usage,
            "'{}' exists and is not a list of evaluations. It would be overwritten. Move it elsewhere.",
            file_.string());
    entries_.push_back(std::move(*entry));
    text_ += line + '\n';
  }
}

std::optional<EvaluationList::Entry> EvaluationList::entry_in(const std::string& line) {
  const nlohmann::json object = try_parse_json(line);
  const std::optional<std::int64_t> step = count_in(object, "step");
  std::string hash = text_in(object, "weights_hash");
  return step && !hash.empty() ? std::optional(Entry{*step, std::move(hash)}) : std::nullopt;
}

bool EvaluationList::has(std::int64_t step, const std::string& weights_hash) const {
  return std::ranges::any_of(
      entries_, [&](const Entry& entry) { return entry.step == step && entry.weights_hash == weights_hash; });
}

void EvaluationList::add(std::int64_t step, std::int64_t epoch, const std::string& weights_hash,
                         const Evaluation& evaluation) {
  nlohmann::json fields = {{"step", step},
                           {"epoch", epoch},
                           {"weights_hash", weights_hash},
                           {"loss", evaluation.loss()},
                           {"accuracy", evaluation.accuracy()},
                           {"top5", evaluation.top5()},
                           {"samples", evaluation.samples},
                           {"time", utc_time()}};
  if (const std::optional<double> plain = evaluation.plain_accuracy()) {
    fields["test_augment"] = test_augmentation_name(evaluation.augmentation);
    fields["plain_accuracy"] = *plain;
  }
  const std::string line = json_text(fields);
  write_file_atomically(file_, text_ + line + '\n');
  text_ += line + '\n';
  entries_.push_back({step, weights_hash});
}

}  // namespace lockstep
