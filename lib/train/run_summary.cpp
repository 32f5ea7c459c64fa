#include "train/run_summary.hpp"

#include <algorithm>
#include <array>
#include <ctime>
#include <filesystem>
#include <utility>

#include "base/clock.hpp"
#include "base/io/file.hpp"
#include "run/run_file.hpp"
#include "slurm/submit/shell_text.hpp"

namespace lockstep {
namespace {

constexpr std::size_t max_interruptions = 1000;

nlohmann::json json_of(const Interruption& one) {
  nlohmann::json entry = {{"state", name_of_end(one.end)}, {"step", one.step}, {"resumed", utc_text(one.resumed)}};
  if (one.ranks) entry["ranks"] = *one.ranks;
  if (!one.device.empty()) entry["device"] = one.device;
  if (one.steps) entry["steps"] = *one.steps;
  return entry;
}

}  // namespace

std::string command_text(std::span<const std::string> words) {
  std::string text;
  for (const std::string& word : words) {
    text += (text.empty() ? "" : " ") + (is_plain_word(word) ? word : shell_word(word));
  }
  return text;
}

bool is_result_name(std::string_view name) {
  constexpr std::array files_of_every_run{run_files::summary, run_files::metrics, run_files::failure, run_files::lock,
                                          run_files::checkpoints};
  return !name.empty() && std::filesystem::path(name).filename() == name && !name.starts_with('.') &&
         !name.starts_with("set-aside-") && std::ranges::find(files_of_every_run, name) == files_of_every_run.end();
}

RunSummary::RunSummary(FolderLock& output)
    : output_(output), earlier_(read_summary(output.folder())), started_(std::time(nullptr)) {
  if (earlier_ && !earlier_->state) earlier_.reset();
}

bool RunSummary::has_epochs(const nlohmann::json& epochs) const {
  if (!earlier_ || !epochs.is_number()) return false;
  const nlohmann::json recipe = earlier_->fields.value("recipe", nlohmann::json());
  return recipe.is_object() && recipe.value("epochs", nlohmann::json()) == epochs;
}

std::vector<std::string> RunSummary::results() const {
  if (!earlier_) return {};
  std::vector<std::string> names = texts_in(earlier_->fields, "results");
  std::erase_if(names, [](const std::string& name) { return !is_result_name(name); });
  return names;
}

void RunSummary::go_on(std::int64_t step, std::int64_t steps_left) {
  if (!earlier_) return;
  started_ = earlier_->started.value_or(started_);
  interruptions_ = earlier_->interruptions;
  // With the ranks, device and steps of that attempt: the summary now has this attempt's.
  if (is_unfinished() || steps_left > 0) {
    interruptions_.push_back(
        {*earlier_->state, step, std::time(nullptr), earlier_->ranks, earlier_->device, earlier_->steps});
  }
  const std::size_t too_many = interruptions_.size() - std::min(interruptions_.size(), max_interruptions);
  interruptions_.erase(interruptions_.begin(), interruptions_.begin() + static_cast<std::ptrdiff_t>(too_many));
}

void RunSummary::write(RunState state, nlohmann::json fields) {
  output_.require_held();
  fields["started"] = utc_text(started_);
  fields["ended"] = state == RunState::running ? nlohmann::json() : nlohmann::json(utc_time());
  fields["interruptions"] = nlohmann::json::array();
  for (const Interruption& one : interruptions_) fields["interruptions"].push_back(json_of(one));
  write_file_atomically(output_.folder() / run_files::summary, summary_text(state, fields));
}

}  // namespace lockstep
