#include "train/monitoring/checkpoint_feed.hpp"

#include <system_error>
#include <utility>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "files/tensor_file.hpp"
#include "run/checkpoint_files.hpp"
#include "run/training_status.hpp"

namespace lockstep {

namespace fs = std::filesystem;

CheckpointFeed::CheckpointFeed(fs::path folder, std::chrono::milliseconds patience)
    : folder_(std::move(folder)), patience_(patience) {}

CheckpointFeed::Look CheckpointFeed::look() {
  const TrainingStatus status = training_status(folder_);
  const bool is_last_look = is_over(status);  // checked before the checkpoints are listed, so that none is missed
  for (const auto& [step, path] : checkpoints_in(status.checkpoints)) {
    std::error_code error;
    FileMark mark;
    mark.time = fs::last_write_time(path, error);
    if (!error) mark.bytes = fs::file_size(path, error);
    const auto known = given_.find(step);
    if (error || (known != given_.end() && known->second == mark)) continue;
    given_[step] = mark;
    try {
      return {Look::Kind::checkpoint, path, read_file(path, tensor_file_limits::file_bytes), ""};
    } catch (const Error&) {
      if (!is_absent(path)) throw;
    }
  }
  if (!is_last_look || !status.summary.state) return {};
  return {Look::Kind::training_over, status.checkpoints, "", describe_state(status.summary, {})};
}

bool CheckpointFeed::is_over(const TrainingStatus& status) {
  if (std::exchange(lock_, status.holder.lock) != status.holder.lock) unchanged_ = Stopwatch();
  if (!status.summary.state || status.holder.kind == FolderHolder::Kind::here) return false;
  return status.holder.kind == FolderHolder::Kind::nobody || unchanged_.milliseconds() > double(patience_.count());
}

}  // namespace lockstep
