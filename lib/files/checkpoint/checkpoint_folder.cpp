#include "files/checkpoint/checkpoint_folder.hpp"

#include <algorithm>
#include <cmath>
#include <ranges>
#include <system_error>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/log.hpp"
#include "files/folder/set_aside.hpp"
#include "run/checkpoint_files.hpp"

namespace lockstep {

namespace fs = std::filesystem;

std::int64_t step_of_training(const fs::path& path, std::string& image) {
  return parse_checkpoint(path, image).state.progress.step;
}

CheckpointFolder::CheckpointFolder(std::shared_ptr<FolderLock> lock, const KeepRule& keep, StepOfCheckpoint step_of)
    : lock_(std::move(lock)), keep_(keep), step_of_(std::move(step_of)) {}

fs::path CheckpointFolder::file_of(std::int64_t step) const { return path() / checkpoint_name(step); }

std::set<std::int64_t> CheckpointFolder::steps() const {
  const std::map<std::int64_t, fs::path> found = checkpoints_in(path());
  return {std::views::keys(found).begin(), std::views::keys(found).end()};
}

std::optional<CheckpointFolder::Found> CheckpointFolder::newest_valid() {
  const std::set<std::int64_t> found = steps();
  for (const std::int64_t step : found | std::views::reverse) {
    const fs::path path = file_of(step);
    try {
      std::string image = read_file(path, tensor_file_limits::file_bytes);
      const std::int64_t stored = step_of_(path, image);
      if (stored == step) return Found{path, std::move(image)};
      log::warning("'{}' is the checkpoint of step {}: it was probably renamed. It is skipped.", path.string(), stored);
    } catch (const Error& error) {
      log::warning("{} It is skipped.", error.what());
    }
    damaged_.insert(step);
  }
  require(found.empty(), Failure::bad_data,
          "none of the {} checkpoints in '{}' can be read. No file was overwritten. Restore one, or start from scratch "
          "with --resume never.",
          found.size(), path().string());
  return std::nullopt;
}

fs::path CheckpointFolder::newest_finite() const {
  const auto is_finite = [](const ParameterStore::Entry& entry) {
    return std::ranges::all_of(entry.values, [](float value) { return std::isfinite(value); });
  };
  const std::set<std::int64_t> found = steps();
  for (const std::int64_t step : found | std::views::reverse) {
    try {
      if (std::ranges::all_of(read_checkpoint(file_of(step)).model.entries, is_finite)) return file_of(step);
    } catch (const Error&) {
      continue;  // damaged; reported when a training resumes from it
    }
  }
  return {};
}

bool CheckpointFolder::has(const fs::path& file) const {
  std::error_code error;
  return fs::equivalent(fs::absolute(file, error).parent_path(), path(), error);
}

bool CheckpointFolder::has_after(std::int64_t step) const {
  return std::ranges::any_of(steps(), [step](std::int64_t other) { return other > step; });
}

void CheckpointFolder::resume_after(std::int64_t step, const std::map<std::int64_t, double>& scores) {
  remove_incomplete();
  scores_ = scores;
  std::erase_if(scores_, [step](const auto& score) { return score.first > step; });
  set_later_aside(step);
}

void CheckpointFolder::resume_with_copy(std::int64_t step, std::int64_t copied, std::span<const std::byte> image,
                                        const std::function<void()>& take_over) {
  remove_incomplete();
  write_file_atomically(file_of(copied), image, [&] {
    take_over();
    set_later_aside(step);
  });
  keep_written(copied);
}

void CheckpointFolder::remove_incomplete() const {
  lock_->require_held();
  for (const fs::path& removed : remove_partial_files(path())) {
    log::warning("removed '{}', which a previous run left incomplete.", removed.string());
  }
}

void CheckpointFolder::set_later_aside(std::int64_t step) {
  lock_->require_held();
  SetAside aside(*lock_);
  for (const std::int64_t later : steps() | std::views::filter([step](std::int64_t other) { return other > step; })) {
    aside.move(file_of(later).filename());
    damaged_.erase(later);
  }
  own_ = steps();
  std::erase_if(own_, [this](std::int64_t one) { return damaged_.contains(one); });
  if (aside.path().empty()) return;
  log::warning("{} in '{}' were moved to '{}'.",
               step < 0 ? "checkpoints of an earlier training" : "the checkpoints of later steps", path().string(),
               aside.path().string());
}

std::set<std::int64_t> CheckpointFolder::kept(const std::set<std::int64_t>& steps) const {
  std::set<std::int64_t> kept;
  for (const std::int64_t step : steps | std::views::reverse | std::views::take(keep_.latest)) kept.insert(step);
  std::vector<std::pair<double, std::int64_t>> by_score;
  for (const auto& [step, accuracy] : scores_) {
    if (steps.contains(step)) by_score.emplace_back(accuracy, step);
  }
  std::ranges::sort(by_score, std::greater{});
  for (const auto& [accuracy, step] : by_score | std::views::take(keep_.best)) kept.insert(step);
  return kept;
}

void CheckpointFolder::complete_scores(TrainingState& state) {
  const std::int64_t step = state.progress.step;
  if (state.progress.tested_step == step && step > 0) scores_[step] = state.report.score;
  state.scores = scores_;
}

fs::path CheckpointFolder::write(Checkpoint checkpoint) {
  complete_scores(checkpoint.state);
  return write(checkpoint.state.progress.step, checkpoint_image(checkpoint));
}

fs::path CheckpointFolder::write(std::int64_t step, std::span<const std::byte> image) {
  const fs::path path = file_of(step);
  lock_->require_held();
  write_file_atomically(path, image, [this] { lock_->require_held(); });
  keep_written(step);
  return path;
}

fs::path CheckpointFolder::write(Checkpoint checkpoint, const WeightSync& sync) {
  complete_scores(checkpoint.state);
  return write(checkpoint.state.progress.step,
               [&](UnpublishedFile* file) { stream_checkpoint(file, checkpoint, sync); });
}

fs::path CheckpointFolder::write(std::int64_t step, const WriteContent& content) {
  const fs::path path = file_of(step);
  stream_file(
      path, [this] { lock_->require_held(); }, content);
  keep_written(step);
  return path;
}

// After a checkpoint was written: removes those that no rule keeps.
void CheckpointFolder::keep_written(std::int64_t step) {
  own_.insert(step);
  // Files that others put there meanwhile are ignored. They do not count against this training's checkpoints.
  std::set<std::int64_t> present = steps();
  std::erase_if(present, [this](std::int64_t one) { return !own_.contains(one); });
  const std::set<std::int64_t> keep = kept(present);
  for (const std::int64_t one : present) {
    if (keep.contains(one)) continue;
    std::error_code error;
    fs::remove(file_of(one), error);
    if (error) log::warning("cannot remove '{}': {}.", file_of(one).string(), error.message());
    scores_.erase(one);
  }
}

}  // namespace lockstep
