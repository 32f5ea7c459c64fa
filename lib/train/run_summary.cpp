#include "train/run_summary.hpp"

#include <fmt/chrono.h>

#include <ctime>
#include <filesystem>
#include <optional>

#include "base/error.hpp"
#include "base/io/file.hpp"

namespace lockstep {
namespace {

constexpr std::size_t limit_bytes = 1 << 24;
constexpr std::size_t most_interruptions = 1000;

std::filesystem::path summary_file(const FolderLock& output) { return output.folder() / "summary.json"; }

// The state in a summary; nothing where it is none of ours.
std::optional<RunState> state_in(const nlohmann::json& summary) {
  if (!summary.is_object() || !summary.contains("state") || !summary["state"].is_string()) return std::nullopt;
  return run_state_of(summary["state"].get<std::string>());
}

// A time as utc_time() gives it, or nothing.
std::string time_in(const nlohmann::json& summary, const char* field) {
  const nlohmann::json value = summary.value(field, nlohmann::json());
  return value.is_string() && value.get<std::string>().size() == utc_time().size() ? value.get<std::string>() : "";
}

}  // namespace

std::string utc_time() { return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr))); }

RunSummary::RunSummary(FolderLock& output) : output_(output), started_(utc_time()) {
  if (is_absent(summary_file(output_))) return;
  constexpr bool no_exceptions = false;
  earlier_ = nlohmann::json::parse(read_file(summary_file(output_), limit_bytes), nullptr, no_exceptions);
  state_ = state_in(earlier_);
}

void RunSummary::go_on(std::int64_t step) {
  if (!state_) return;
  if (const std::string started = time_in(earlier_, "started"); !started.empty()) started_ = started;
  const nlohmann::json before = earlier_.value("interruptions", nlohmann::json());
  if (before.is_array() && before.size() < most_interruptions) interruptions_ = before;
  if (!is_unfinished()) return;
  const std::string ended_as(*state_ == RunState::running ? "killed" : name_of(*state_));
  interruptions_.push_back({{"state", ended_as}, {"step", step}, {"resumed", utc_time()}});
}

void RunSummary::write(RunState state, nlohmann::json fields) {
  output_.require_held();
  fields["started"] = started_;
  fields["ended"] = state == RunState::running ? nlohmann::json() : nlohmann::json(utc_time());
  fields["interruptions"] = interruptions_;
  write_file_atomically(summary_file(output_), summary_text(state, fields));
}

}  // namespace lockstep
