#include "search/journal/trial_lease.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/system_failure.hpp"
#include "base/text/json_text.hpp"
#include "files/folder/folder_lock.hpp"
#include "run/run_file.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

constexpr int missed_heartbeats = 3;
constexpr std::size_t longest_lease = 1 << 16;
constexpr std::int64_t longest_heartbeat_ms = 24 * 3600 * 1000;

fs::path lease_file(const fs::path& trial_folder) { return trial_folder / "lease"; }
std::string heartbeat_text(std::int64_t heartbeat) { return fmt::format("\n{:020}\n", heartbeat); }

std::string lease_line(const LockHolder& own, std::int64_t number, milliseconds heartbeat) {
  nlohmann::json line = try_parse_json(lock_holder_text(own));
  line["lease"] = number;
  line["heartbeat_ms"] = heartbeat.count();
  return json_text(line);
}

Error unwritable_lease(const fs::path& path, int error_number) {
  return system_failure(fmt::format("cannot write '{}'", path.string()), error_number, Access::writing, "--output");
}

void make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw unwritable_lease(folder, error.value());
}

Descriptor open_written(const fs::path& file) {
  // careful-open: a regular file that this process has just written
  Descriptor handle(::open(file.c_str(), O_WRONLY | O_NOFOLLOW | O_CLOEXEC));
  if (handle < 0) throw unwritable_lease(file, errno);
  return handle;
}

}  // namespace

LeaseState read_lease(const fs::path& trial_folder) {
  LeaseState state;
  state.text = read_run_file(lease_file(trial_folder), longest_lease).value_or("");
  const nlohmann::json line = try_parse_json(state.text.substr(0, state.text.find('\n')));
  state.number = count_in(line, "lease").value_or(0);
  state.heartbeat = milliseconds(std::min(count_in(line, "heartbeat_ms").value_or(0), longest_heartbeat_ms));
  state.holder = parse_lock_holder(state.text);
  return state;
}

TrialLease::TrialLease(const fs::path& trial_folder, const LockHolder& own, milliseconds heartbeat)
    : file_(lease_file(trial_folder)),
      number_(read_lease(trial_folder).number + 1),
      line_(lease_line(own, number_, heartbeat)),
      heartbeat_(heartbeat),
      handle_(-1) {
  make_folder(trial_folder);
  write_file_atomically(file_, line_ + heartbeat_text(0));
  handle_ = open_written(file_);
  // LeaseWatch has found that nobody writes there.
  const fs::path lock = trial_folder / run_files::lock;
  if (::unlink(lock.c_str()) != 0 && errno != ENOENT) throw unwritable_lease(lock, errno);
  thread_ = std::thread([this] { write_heartbeats(); });
}

TrialLease::~TrialLease() {
  {
    const std::lock_guard guard(mutex_);
    is_ending_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

bool TrialLease::is_held() const {
  const std::string text = read_run_file(file_, longest_lease).value_or("");
  return text.substr(0, text.find('\n')) == line_;
}

void TrialLease::release() { write_file_atomically(file_, json_text({{"lease", number_}}) + "\n"); }

// Writes in place, so a full disk does not stop it.
void TrialLease::write_heartbeats() {
  std::unique_lock guard(mutex_);
  for (std::int64_t heartbeat = 1; !wake_.wait_for(guard, heartbeat_, [this] { return is_ending_; }); ++heartbeat) {
    const std::string text = heartbeat_text(heartbeat);
    [[maybe_unused]] const ssize_t ignored =
        ::pwrite(handle_, text.data(), text.size(), static_cast<off_t>(line_.size()));
    ::fsync(handle_);  // network file systems send it to their server only then
  }
}

bool LeaseWatch::is_free(const fs::path& trial_folder, const LockHolder& own) {
  const LeaseState lease = read_lease(trial_folder);
  const FolderHolder training = holder_of(trial_folder);
  const Liveness liveness = lease.holder ? liveness_of(*lease.holder, own) : Liveness::gone;
  const bool has_other_training = training.kind == FolderHolder::Kind::elsewhere;
  if (liveness == Liveness::gone && training.kind == FolderHolder::Kind::nobody) return true;
  const std::string seen = lease.text + training.lock;
  const bool has_changed = seen != std::exchange(seen_, seen);
  if (has_changed) since_ = {};
  if (liveness == Liveness::alive || training.kind == FolderHolder::Kind::here || has_changed) return false;
  milliseconds heartbeat = lease.heartbeat;
  if (heartbeat.count() == 0) heartbeat = TrialLease::default_heartbeat;  // a damaged file
  if (has_other_training) heartbeat = std::max(heartbeat, FolderLock::default_heartbeat);
  return since_.milliseconds() >= static_cast<double>(missed_heartbeats * heartbeat.count());
}

}  // namespace lockstep
