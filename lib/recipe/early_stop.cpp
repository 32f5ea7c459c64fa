#include "recipe/early_stop.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text/number.hpp"
#include "recipe/field_makers.hpp"

namespace lockstep {
namespace {

constexpr std::array<EarlyStop, 4> metrics{{{Split::test, TestMetric::accuracy},
                                            {Split::test, TestMetric::loss},
                                            {Split::validation, TestMetric::accuracy},
                                            {Split::validation, TestMetric::loss}}};
constexpr NumberRange<std::int64_t> patiences{1, 1000000};
constexpr NumberRange<double> deltas{0, largest};

}  // namespace

std::optional<EarlyStop> parse_early_stop(std::string_view text) {
  const std::size_t first = text.find(':');
  const std::size_t second = first == std::string_view::npos ? first : text.find(':', first + 1);
  if (second == std::string_view::npos) return std::nullopt;
  const auto patience = parse_number(text.substr(first + 1, second - first - 1), patiences);
  const auto min_delta = parse_number(text.substr(second + 1), deltas);
  const auto metric = std::ranges::find(metrics, text.substr(0, first), metric_name);
  if (!patience || !min_delta || metric == metrics.end()) return std::nullopt;
  return EarlyStop{metric->split, metric->metric, *patience, *min_delta};
}

std::string early_stop_text(const EarlyStop& rule) {
  return fmt::format("{}:{}:{}", metric_name(rule), rule.patience, number_text(rule.min_delta));
}

std::string metric_name(const EarlyStop& rule) {
  return fmt::format("{}-{}", split_name(rule.split), rule.metric == TestMetric::loss ? "loss" : "accuracy");
}

}  // namespace lockstep
