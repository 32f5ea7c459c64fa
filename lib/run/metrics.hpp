// metrics.jsonl: one JSON object per line, appended while a training runs. apps/files.md documents each field.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep {

// Values are unset if the line has none, or they are out of range (run_file.hpp), or not finite (null).
struct MetricsLine {
  enum class Kind : std::uint8_t { training, test, validation, trainer, other };
  Kind kind = Kind::other;
  std::int64_t epoch = 1;               // from 1
  std::int64_t step = 1;                // steps done, from 1
  std::optional<std::int64_t> steps;    // of the whole training
  std::optional<std::int64_t> samples;  // training: trained so far; tests: of the split
  std::optional<double> loss;           // mean; training: since the previous such line
  std::optional<double> accuracy;       // top-1, 0 to 1
  std::optional<double> top5;
  std::optional<double> ema_loss, ema_accuracy;  // of tests, with --ema
  std::optional<double> learning_rate;
  std::optional<double> samples_per_second;  // all ranks, since the previous such line
};

// Nothing if the line is damaged: not a JSON object with `kind`, `epoch` and `step`, or longer than 64 KiB.
std::optional<MetricsLine> parse_metrics_line(std::string_view line);

// Whether a custom training loop may report a metric by this name: letters, digits, '_', '-' and '.', at most 64.
bool is_metric_name(std::string_view name);
// Whether every line may have this number, whatever its kind: "epoch", "step", "steps", "seconds".
bool is_common_field(std::string_view name);
// The value of such a metric in a line; NaN if it was not finite (null). Nothing if the line lacks it, or is damaged.
std::optional<double> reported_metric(std::string_view line, std::string_view name);

// The newest line of each kind, of those within the last 64 KiB of the file: cheap, for programs that look often.
// Damaged lines, and a last line without its end, are passed over.
struct NewestMetrics {
  std::optional<MetricsLine> training, test, validation;
};
NewestMetrics read_newest_metrics(const std::filesystem::path& folder);

struct NumberedLine {
  std::int64_t number;                 // from 1
  std::string_view text;               // without its end; of a line that is too long, a part
  std::optional<MetricsLine> content;  // unset: damaged
};
// A trainer that is a program of its own joined or left. Texts are empty if the line lacks them, and may be
// unprintable.
struct TrainerLine {
  std::int64_t step;  // in which it did
  std::string number, process, host;
  std::string change;                         // "joined", or why it left
  std::optional<std::int64_t> trainers = {};  // that were there then
};
// `line` is of kind `trainer`.
TrainerLine trainer_line(const NumberedLine& line);

// Calls `take` for each line that has its end, in order, without those that are appended meanwhile. False, without
// calls, if the file cannot be read (run_file.hpp) or has more than 4 GiB.
bool read_metrics(const std::filesystem::path& folder, const std::function<void(const NumberedLine&)>& take);

}  // namespace lockstep
