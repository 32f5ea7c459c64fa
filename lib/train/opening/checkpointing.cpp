#include "train/opening/checkpointing.hpp"

#include <map>
#include <system_error>
#include <utility>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/log.hpp"
#include "run/checkpoint_files.hpp"
#include "runtime/failure/contained_failure.hpp"

namespace lockstep {

namespace {

bool lies_within(const std::filesystem::path& inner, const std::filesystem::path& outer) {
  std::error_code error;
  const std::filesystem::path way = std::filesystem::weakly_canonical(inner, error)
                                        .lexically_relative(std::filesystem::weakly_canonical(outer, error));
  return !error && !way.empty() && *way.begin() != "..";
}

std::shared_ptr<FolderLock> lock_of(const std::filesystem::path& folder, const std::shared_ptr<FolderLock>& output,
                                    const std::function<void()>& look) {
  std::error_code error;
  const bool is_output = output != nullptr && std::filesystem::equivalent(folder, output->folder(), error);
  if (is_output) return output;
  auto lock =
      std::make_shared<FolderLock>(folder, "--checkpoints", this_lock_holder(), FolderLock::default_heartbeat, look);
  if (output != nullptr && lies_within(folder, output->folder())) lock->lie_within(output);
  return lock;
}

}  // namespace

Checkpointing::Checkpointing(const Communicator& world, CheckpointOptions options,
                             const std::shared_ptr<FolderLock>& output, const StopAgreement& stops)
    : world_(world), options_(std::move(options)) {
  if (!options_.folder.empty()) {
    stops.wait_for_rank_0([&](const std::function<void()>& look) {
      folder_ = std::make_unique<CheckpointFolder>(lock_of(options_.folder, output, look), options_.keep);
    });
  }
  std::string image = from_rank_0(world, [this] { return find(); });
  on_all_ranks(world, [&] {
    if (!image.empty()) found_ = parse_checkpoint(options_.folder, image);
  });
  found_in_ = world.broadcast(found_in_.string(), 0);
  continues_ = world.max(continues_ ? 1 : 0) > 0;
}

// The bytes of the checkpoint to resume from; empty: start from the beginning.
std::string Checkpointing::find() {
  if (options_.resume == "never") return "";
  if (options_.resume != "auto") {
    std::string image = read_file(options_.resume, tensor_file_limits::file_bytes);
    parse_checkpoint(options_.resume, image);
    found_in_ = options_.resume;
    continues_ = folder_ == nullptr || folder_->has(found_in_);
    log::info("resuming from '{}'", options_.resume);
    return image;
  }
  std::optional<CheckpointFolder::Found> newest = folder_ ? folder_->newest_valid() : std::nullopt;
  if (!newest) return "";
  found_in_ = newest->path;
  continues_ = true;
  log::info("resuming from '{}'", newest->path.string());
  return std::move(newest->image);
}

void Checkpointing::forget_tensors() {
  if (!found_) return;
  found_->model.entries = {};
  found_->optimizer = {};
  found_->ema = {};
}

std::int64_t Checkpointing::resumed_step() const { return continues_ ? found_->state.progress.step : -1; }

LaterOutput Checkpointing::later_output() const {
  return folder_ && folder_->has_after(resumed_step()) ? LaterOutput::set_aside : LaterOutput::repeated;
}

void Checkpointing::begin(std::int64_t steps_per_epoch, const WeightSync* divided) {
  divided_ = divided;
  if (!folder_) return;
  folder_->resume_after(resumed_step(), found_ ? found_->state.scores : std::map<std::int64_t, double>());
  writer_ = std::make_unique<CheckpointWriter>(*folder_);
  clock_.emplace(options_.every, steps_per_epoch, found_ ? found_->state.progress.step : 0);
}

// Collective if the state is divided. What rank 0 has decided; on other ranks false otherwise.
bool Checkpointing::agree(bool of_rank_0) const {
  return divided_ == nullptr ? of_rank_0 : is_on() && world_.max(of_rank_0 ? 1 : 0) > 0;
}

bool Checkpointing::is_due(std::int64_t step) const {
  return agree(writer_ && writer_->is_idle() && clock_->is_due(step));
}

void Checkpointing::write(Checkpoint checkpoint) {
  if (writer_) clock_->note_written(checkpoint.state.progress.step);
  if (divided_ == nullptr) {
    writer_->start(std::move(checkpoint));
  } else if (writer_) {
    writer_->write_now(std::move(checkpoint), *divided_);
  } else {
    stream_checkpoint(nullptr, checkpoint, *divided_);
  }
}

Checkpointing::Kept Checkpointing::last() const {
  const CheckpointWriter::Record& record = writer_->record();
  if (!record.failure.empty()) return {{}, record.failure};
  return {record.path, ""};
}

Checkpointing::Kept Checkpointing::write_last(Checkpoint checkpoint) {
  if (writer_) writer_->wait();
  if (agree(writer_ && !is_written(checkpoint.state.progress.step))) {
    write(std::move(checkpoint));
    if (writer_) writer_->wait();
  }
  if (!writer_) return {};
  Kept kept = last();
  if (!kept.failure.empty()) return kept;
  try {
    read_checkpoint(kept.path);
  } catch (const Error& error) {
    return {{}, error.what()};
  }
  return kept;
}

std::optional<std::int64_t> Checkpointing::newest_step() const {
  const std::optional<NewestCheckpoint> newest = newest_checkpoint(path());
  return newest ? std::optional(newest->step) : std::nullopt;
}

void Checkpointing::release() {
  if (folder_) folder_->release();
}

std::filesystem::path Checkpointing::newest_finite() {
  if (!writer_) return {};
  writer_->wait();
  return folder_->newest_finite();
}

double Checkpointing::seconds_to_write() const {
  constexpr double unmeasured_seconds = 1;
  if (!writer_) return 0;
  return writer_->longest_seconds() > 0 ? writer_->longest_seconds() : unmeasured_seconds;
}

std::string Checkpointing::description() const {
  return fmt::format("'{}', every {}; kept: the latest {} and the best {}", options_.folder.string(),
                     checkpoint_interval_text(options_.every), options_.keep.latest, options_.keep.best);
}

}  // namespace lockstep
