#include "train/run_summary.hpp"

#include <fmt/chrono.h>

#include <ctime>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/text/json_text.hpp"
#include "slurm/submit/shell_text.hpp"

namespace lockstep {
namespace {

constexpr std::size_t limit_bytes = 1 << 24;
constexpr int nesting_limit = 16;
constexpr std::size_t max_interruptions = 1000;

std::filesystem::path summary_file(const FolderLock& output) { return output.folder() / "summary.json"; }

bool is_interruption(const nlohmann::json& entry) {
  return entry.is_object() && entry.value("state", nlohmann::json()).is_string() &&
         entry.value("step", nlohmann::json()).is_number_integer() &&
         entry.value("resumed", nlohmann::json()).is_string();
}

// The state in a summary; std::nullopt if it is not a valid summary.
std::optional<RunState> state_in(const nlohmann::json& summary) {
  if (!summary.is_object() || !summary.contains("state") || !summary["state"].is_string()) return std::nullopt;
  return run_state_of(summary["state"].get<std::string>());
}

// A time in the format of utc_time(); empty if invalid.
std::string time_in(const nlohmann::json& summary, const char* field) {
  const nlohmann::json value = summary.value(field, nlohmann::json());
  return value.is_string() && value.get<std::string>().size() == utc_time().size() ? value.get<std::string>() : "";
}

}  // namespace

std::string utc_time() { return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr))); }

nlohmann::json read_summary(const std::filesystem::path& file) {
  try {
    nlohmann::json summary = try_parse_json(read_file(file, limit_bytes), nesting_limit);
    return summary.is_object() ? summary : nlohmann::json();
  } catch (const Error&) {
    return {};
  }
}

std::string command_text(const nlohmann::json& summary) {
  std::string text;
  const nlohmann::json words = summary.value("command_line", nlohmann::json());
  for (const nlohmann::json& word : words.is_array() ? words : nlohmann::json::array()) {
    if (!word.is_string()) continue;
    const auto& plain = word.get_ref<const std::string&>();
    text += (text.empty() ? "" : " ") + (is_plain_word(plain) ? plain : shell_word(plain));
  }
  return text;
}

RunSummary::RunSummary(FolderLock& output) : output_(output), started_(utc_time()) {
  if (is_absent(summary_file(output_))) return;
  earlier_ = read_summary(summary_file(output_));
  state_ = state_in(earlier_);
}

void RunSummary::go_on(std::int64_t step) {
  if (!state_) return;
  if (const std::string started = time_in(earlier_, "started"); !started.empty()) started_ = started;
  const nlohmann::json before = earlier_.value("interruptions", nlohmann::json());
  for (const nlohmann::json& entry : before.is_array() ? before : nlohmann::json::array()) {
    if (is_interruption(entry) && interruptions_.size() < max_interruptions) interruptions_.push_back(entry);
  }
  if (!is_unfinished()) return;
  const std::string ended_as(*state_ == RunState::running ? "killed" : name_of(*state_));
  nlohmann::json interruption = {{"state", ended_as}, {"step", step}, {"resumed", utc_time()}};
  // From that attempt: the summary now has this attempt's values.
  const nlohmann::json ranks = earlier_.value("ranks", nlohmann::json());
  const nlohmann::json device = earlier_.value("device", nlohmann::json());
  if (ranks.is_number_integer()) interruption["ranks"] = ranks;
  if (device.is_string()) interruption["device"] = device;
  interruptions_.push_back(std::move(interruption));
}

void RunSummary::write(RunState state, nlohmann::json fields) {
  output_.require_held();
  fields["started"] = started_;
  fields["ended"] = state == RunState::running ? nlohmann::json() : nlohmann::json(utc_time());
  fields["interruptions"] = interruptions_;
  write_file_atomically(summary_file(output_), summary_text(state, fields));
}

}  // namespace lockstep
