#include "run/exit_report.hpp"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/text/json_text.hpp"
#include "run/run_file.hpp"

namespace lockstep {
namespace {

constexpr std::size_t exit_report_bytes = 1 << 16;

// Job scripts pass host names to Slurm.
bool is_host(std::string_view name) {
  constexpr std::string_view allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
  return !name.empty() && name.find_first_not_of(allowed) == std::string_view::npos;
}

int number_up_to(const nlohmann::json& report, std::string_view field, int most, int otherwise) {
  const std::optional<std::int64_t> number = count_in(report, field);
  return number && *number <= most ? static_cast<int>(*number) : otherwise;
}

}  // namespace

std::optional<ExitReport> parse_exit_report(std::string_view text) {
  const nlohmann::json report = try_parse_json(text);
  const auto sentence = report.find("sentence");
  if (sentence == report.end() || !sentence->is_string()) return std::nullopt;
  ExitReport result;
  result.code = number_up_to(report, "code", 255, 0);
  if (result.code == 0) return std::nullopt;
  result.signal = number_up_to(report, "signal", 127, 0);
  result.rank = number_up_to(report, "rank", std::numeric_limits<int>::max() - 1, -1);
  result.sentence = sentence->get<std::string>();
  result.host = text_in(report, "host");
  if (!is_host(result.host)) result.host.clear();
  result.error_line = text_in(report, "error_line");
  result.bad_hosts = texts_in(report, "bad_hosts");
  std::erase_if(result.bad_hosts, [](const std::string& host) { return !is_host(host); });
  return result;
}

std::optional<ExitReport> read_exit_report(const std::filesystem::path& file) {
  const std::optional<std::string> text = read_run_file(file, exit_report_bytes);
  return text ? parse_exit_report(*text) : std::nullopt;
}

}  // namespace lockstep
