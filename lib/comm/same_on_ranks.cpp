#include "comm/same_on_ranks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <ranges>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/text/printable.hpp"
#include "comm/agreed_error.hpp"

namespace lockstep {
namespace {

constexpr char field_end = '\0';  // occurs in no file name and no value

struct RankReport {
  std::string host;
  std::map<std::string, std::string> values;
};

std::string to_text(const std::vector<RankValue>& values) {
  std::string text;
  for (const RankValue& value : values) text += value.name + field_end + value.value + field_end;
  return text;
}

std::string take_field(std::string_view& text) {
  std::string field(text.substr(0, text.find(field_end)));
  text.remove_prefix(field.size() + 1);
  return field;
}

RankReport parse_report(std::string_view text) {
  RankReport report;
  report.host = take_field(text);
  while (!text.empty()) {
    std::string name = take_field(text);
    report.values[std::move(name)] = take_field(text);
  }
  return report;
}

std::string value_on(const RankReport& report, const std::string& name) {
  const auto found = report.values.find(name);
  return found == report.values.end() ? "none" : found->second;
}

// Ranks by value.
using Groups = std::map<std::string, std::vector<std::size_t>>;

Groups group_by_value(const std::vector<RankReport>& reports, const std::string& name) {
  Groups groups;
  for (std::size_t rank = 0; rank < reports.size(); ++rank) groups[value_on(reports[rank], name)].push_back(rank);
  return groups;
}

// "n2 (rank 3), n5 (rank 8) and 12 more ranks"
std::string describe_ranks(const std::vector<RankReport>& reports, const std::vector<std::size_t>& ranks) {
  constexpr std::size_t max_named = 4;
  std::string text;
  for (const std::size_t rank : ranks | std::views::take(max_named)) {
    text += fmt::format("{}{} (rank {})", text.empty() ? "" : ", ", printable(reports[rank].host), rank);
  }
  if (ranks.size() > max_named) text += fmt::format(" and {} more ranks", ranks.size() - max_named);
  return text;
}

// Rarest values first, because most nodes are probably right.
std::string describe_groups(const std::vector<RankReport>& reports, const Groups& groups) {
  constexpr std::size_t max_values = 3;
  std::vector<std::pair<std::string, std::vector<std::size_t>>> ordered(groups.begin(), groups.end());
  std::ranges::stable_sort(ordered, {},
                           [](const auto& group) { return std::pair(group.second.size(), group.second.front() == 0); });
  std::string text;
  for (const auto& [value, ranks] : ordered | std::views::take(max_values)) {
    text += fmt::format("{}{} on {}", text.empty() ? "" : "; ", printable(value), describe_ranks(reports, ranks));
  }
  if (ordered.size() > max_values) text += fmt::format("; and {} more values", ordered.size() - max_values);
  return text;
}

// The names in the order of `own`, then the names that only other ranks have.
std::vector<std::string> names_in_order(const std::vector<RankReport>& reports, const std::vector<RankValue>& own) {
  std::vector<std::string> names;
  for (const RankValue& value : own) names.push_back(value.name);
  for (const RankReport& report : reports) {
    for (const auto& [name, value] : report.values) names.push_back(name);
  }
  return names;
}

}  // namespace

void require_same_on_ranks(const Communicator& world, const std::vector<RankValue>& values, std::string_view advice) {
  if (world.size() == 1) return;
  const std::string text = to_text(values);
  const bool is_same = world.broadcast(text, 0) == text;
  if (world.max(is_same ? 0 : 1) == 0) return;

  std::vector<RankReport> reports;
  for (const std::string& other : world.all_gather(log::host() + field_end + text)) {
    reports.push_back(parse_report(other));
  }
  for (const std::string& name : names_in_order(reports, values)) {
    const Groups groups = group_by_value(reports, name);
    if (groups.size() == 1) continue;
    throw_on_all_ranks(world, 0,
                       Error(Failure::usage, fmt::format("the ranks of this job do not have the same {}: {}. {}",
                                                         printable(name), describe_groups(reports, groups), advice)));
  }
}

}  // namespace lockstep
