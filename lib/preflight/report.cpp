#include "preflight/report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include "base/text/printable.hpp"
#include "base/text/text_table.hpp"
#include "files/result_file.hpp"

namespace lockstep {
namespace {

// "0-3,8"
std::string format_ranges(const std::vector<int>& numbers) {
  std::vector<std::string> words;
  for (std::size_t first = 0; first < numbers.size();) {
    std::size_t last = first;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    words.push_back(first == last ? fmt::format("{}", numbers[first])
                                  : fmt::format("{}-{}", numbers[first], numbers[last]));
    first = last + 1;
  }
  return fmt::format("{}", fmt::join(words, ","));
}

// Scales the unit by thousands: "1.5 GB/s".
std::string scaled(double value, std::string_view of) {
  constexpr std::array<std::string_view, 5> units = {"", "k", "M", "G", "T"};
  std::size_t unit = 0;
  while (value >= 999.5 && unit + 1 < units.size()) {
    value /= 1000;
    ++unit;
  }
  return fmt::format("{:.3g} {}{}", value, units[unit], of);
}

std::string seconds_scaled(double seconds) {
  if (std::abs(seconds) >= 1) return fmt::format("{:.3g} s", seconds);
  return std::abs(seconds) >= 1e-3 ? fmt::format("{:.3g} ms", 1e3 * seconds) : fmt::format("{:.3g} us", 1e6 * seconds);
}

std::string format_size(std::int64_t bytes) {
  constexpr std::int64_t kibi = 1024;
  if (bytes % (kibi * kibi) == 0) return fmt::format("{} MiB", bytes / kibi / kibi);
  if (bytes % kibi == 0 && bytes < kibi * kibi) return fmt::format("{} KiB", bytes / kibi);
  return fmt::format("{:.1f} MB", 1e-6 * static_cast<double>(bytes));
}

std::string lines_of(const std::vector<TextColumn>& table) {
  return fmt::format("{}\n", fmt::join(text_table(table, terminal_width), "\n"));
}

double slowest_of(const NodeFacts& node, const ClusterFacts& facts) {
  double slowest = facts.ranks[static_cast<std::size_t>(node.ranks.front())].samples_per_second;
  for (const int rank : node.ranks) {
    slowest = std::min(slowest, facts.ranks[static_cast<std::size_t>(rank)].samples_per_second);
  }
  return slowest;
}

bool begins_as_cluster(std::string_view start) { return start.starts_with("{\"checkpoint_bytes\":"); }

std::string_view name_of(Severity severity) {
  constexpr std::array<std::string_view, 3> names = {"note", "bad cluster", "bad node"};
  return names[static_cast<std::size_t>(severity)];
}

}  // namespace

std::string cluster_table(const ClusterFacts& facts) {
  constexpr std::size_t max_rows = 64;
  std::vector<const NodeFacts*> nodes;
  for (const NodeFacts& node : facts.nodes) nodes.push_back(&node);
  if (nodes.size() > max_rows) {
    std::ranges::stable_sort(nodes, {}, [&](const NodeFacts* node) { return slowest_of(*node, facts); });
    nodes.resize(max_rows);
  }
  const bool has_links = facts.nodes.size() > 1;
  std::vector<TextColumn> table = {{"node", {}, true}, {"ranks"}, {"cores"}, {"samples/s"}, {"clock"}};
  if (has_links) table.insert(table.end(), {{"to next"}, {"link"}});
  table.insert(table.end(), {{"free"}, {"writes"}, {"reads"}});
  for (const NodeFacts* node : nodes) {
    const RankFacts& first = facts.ranks[static_cast<std::size_t>(node->ranks.front())];
    const bool is_open = node->folder.fault.empty();
    std::vector<std::string> row = {printable_name(node->host), format_ranges(node->ranks),
                                    fmt::format("{}", first.cores), fmt::format("{:.0f}", slowest_of(*node, facts)),
                                    seconds_scaled(node->clock_ahead_seconds)};
    if (has_links) {
      row.push_back(node->link ? seconds_scaled(node->link->latency_seconds) : "-");
      row.push_back(node->link ? scaled(node->link->bytes_per_second, "B/s") : "-");
    }
    row.push_back(scaled(node->folder.free_bytes, "B"));
    row.push_back(is_open ? scaled(node->folder.write_bytes_per_second, "B/s") : "-");
    row.push_back(is_open ? scaled(node->folder.read_bytes_per_second, "B/s") : "-");
    add_row(table, std::move(row));
  }
  std::string text = lines_of(table);
  if (facts.nodes.size() > max_rows) {
    text += fmt::format("and {} more nodes, whose ranks are faster\n", facts.nodes.size() - max_rows);
  }
  if (facts.sums.empty()) return text;
  table = {{"sum of", {}, true}, {"median"}, {"99 %"}, {"algorithm"}, {"bus"}};
  for (const AllReduceFacts& sum : facts.sums) {
    add_row(table, {format_size(sum.bytes), seconds_scaled(sum.median()), seconds_scaled(sum.percentile_99()),
                    scaled(static_cast<double>(sum.bytes) / sum.median(), "B/s"),
                    scaled(bus_bytes_per_second(sum, facts.ranks.size()), "B/s")});
  }
  return text + "\n" + lines_of(table) + "by " + facts.reducer + "\n";
}

std::string findings_text(const std::vector<ClusterFinding>& findings) {
  std::string text;
  for (const ClusterFinding& finding : findings) {
    text += fmt::format("{}: {}\n", name_of(finding.severity), printable(finding.sentence));
  }
  return text;
}

nlohmann::json cluster_json(const ClusterFacts& facts, const std::vector<ClusterFinding>& findings,
                            const ClusterDiagnosis& verdict) {
  nlohmann::json json = json_of(facts);
  nlohmann::json list = nlohmann::json::array();
  for (const ClusterFinding& finding : findings) {
    list.push_back({{"severity", name_of(finding.severity)}, {"hosts", finding.hosts}, {"sentence", finding.sentence}});
  }
  json["findings"] = list;
  json["verdict"] = {{"code", verdict.code}, {"hosts", verdict.hosts}, {"sentence", verdict.sentence}};
  return json;
}

void require_place_for_cluster(const std::filesystem::path& file) {
  require_place_for_result(file, {"result of check_cluster", begins_as_cluster}, "--json");
}

}  // namespace lockstep
