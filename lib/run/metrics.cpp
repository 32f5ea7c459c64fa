#include "run/metrics.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "base/text/choice.hpp"
#include "base/text/json_text.hpp"
#include "run/run_file.hpp"

namespace lockstep {
namespace {

using Kind = MetricsLine::Kind;

constexpr std::size_t line_limit = 1 << 16;  // in bytes
constexpr std::size_t tail_bytes = 1 << 16;  // hundreds of lines
constexpr std::size_t file_limit = std::size_t{1} << 32;
constexpr std::size_t piece_bytes = 1 << 20;
constexpr int line_nesting = 16;
constexpr std::array<Choice<Kind>, 4> kinds{
    {{"training", Kind::training}, {"test", Kind::test}, {"validation", Kind::validation}, {"trainer", Kind::trainer}}};

}  // namespace

std::optional<MetricsLine> parse_metrics_line(std::string_view line) {
  if (line.size() > line_limit) return std::nullopt;
  const nlohmann::json object = try_parse_json(line, line_nesting);
  const std::string kind = text_in(object, "kind");
  const std::int64_t epoch = count_in(object, "epoch").value_or(0);
  const std::int64_t step = count_in(object, "step").value_or(0);
  if (kind.empty() || epoch == 0 || step == 0) return std::nullopt;
  const auto* const known = find_choice(kinds, kind);
  const auto number = [&](const char* field) { return number_in(object, field); };
  return MetricsLine{known == nullptr ? Kind::other : known->value,
                     epoch,
                     step,
                     count_in(object, "steps"),
                     count_in(object, "samples"),
                     number("loss"),
                     number("accuracy"),
                     number("top5"),
                     number("ema_loss"),
                     number("ema_accuracy"),
                     number("learning_rate"),
                     number("samples_per_second")};
}

bool is_metric_name(std::string_view name) {
  constexpr std::string_view allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
  constexpr std::size_t longest = 64;
  return !name.empty() && name.size() <= longest && name.find_first_not_of(allowed) == std::string_view::npos;
}

bool is_common_field(std::string_view name) {
  return name == "epoch" || name == "step" || name == "steps" || name == "seconds";
}

std::optional<double> reported_metric(std::string_view line, std::string_view name) {
  if (line.size() > line_limit) return std::nullopt;
  const nlohmann::json object = try_parse_json(line, line_nesting);
  const auto found = object.find(name);
  if (found == object.end() || !(found->is_number() || found->is_null())) return std::nullopt;
  const double value = found->is_null() ? std::nan("") : found->get<double>();
  return std::isfinite(value) ? value : std::nan("");
}

NewestMetrics read_newest_metrics(const std::filesystem::path& folder) {
  NewestMetrics newest;
  const std::optional<RegularFile> file = open_run_file(folder / run_files::metrics);
  if (!file) return newest;
  const std::string tail = read_at(*file, file->bytes() - std::min(file->bytes(), tail_bytes), tail_bytes);
  std::string_view text = std::string_view(tail).substr(0, tail.rfind('\n') + 1);
  while (!text.empty() && !(newest.training && newest.test && newest.validation)) {
    text.remove_suffix(1);
    const std::size_t start = text.rfind('\n') + 1;
    const std::optional<MetricsLine> line = parse_metrics_line(text.substr(start));
    text = text.substr(0, start);
    for (const auto& [kind, place] : {std::pair(Kind::training, &newest.training), std::pair(Kind::test, &newest.test),
                                      std::pair(Kind::validation, &newest.validation)}) {
      if (line && line->kind == kind && !*place) *place = line;
    }
  }
  return newest;
}

TrainerLine trainer_line(const NumberedLine& line) {
  const nlohmann::json fields = try_parse_json(line.text, line_nesting);
  const std::optional<std::int64_t> number = count_in(fields, "trainer");
  const std::string reason = text_in(fields, "reason");
  return {line.content->step,
          number ? std::to_string(*number) : "",
          text_in(fields, "process"),
          text_in(fields, "host"),
          reason.empty() ? text_in(fields, "change") : reason,
          count_in(fields, "trainers")};
}

bool read_metrics(const std::filesystem::path& folder, const std::function<void(const NumberedLine&)>& take) {
  const std::optional<RegularFile> file = open_run_file(folder / run_files::metrics);
  if (!file || file->bytes() > file_limit) return false;
  std::string begun;  // a line whose end has not been read yet
  std::int64_t number = 0;
  for (std::size_t offset = 0; offset < file->bytes();) {
    const std::string piece = read_at(*file, offset, std::min(piece_bytes, file->bytes() - offset));
    if (piece.empty()) break;  // the file became shorter
    offset += piece.size();
    begun += piece;
    std::string_view left = begun;
    for (std::size_t end = 0; (end = left.find('\n')) != std::string_view::npos; left.remove_prefix(end + 1)) {
      const std::string_view text = left.substr(0, end);
      take({++number, text, parse_metrics_line(text)});
    }
    begun.erase(0, begun.size() - left.size());
    if (begun.size() > line_limit) begun.resize(line_limit + 1);  // damaged, however long it is
  }
  return true;
}

}  // namespace lockstep
