#include "dataset/staging/stage.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <list>
#include <memory>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/log.hpp"
#include "base/progress.hpp"
#include "base/system_failure.hpp"
#include "dataset/shards/manifest.hpp"
#include "dataset/shards/repair_advice.hpp"
#include "dataset/staging/shard_copy.hpp"
#include "runtime/failure/contained_failure.hpp"
#include "runtime/watch/rank_status.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr double round_seconds = 0.25;
constexpr double megabyte = 1e6;

std::int64_t whole_megabytes(double bytes) { return static_cast<std::int64_t>(std::ceil(bytes / megabyte)); }

void make_folder(const fs::path& folder) {
  std::error_code reason;
  fs::create_directories(folder, reason);
  if (!reason && fs::is_directory(folder, reason)) return;
  throw system_failure(fmt::format("cannot create the folder '{}'", folder.string()),
                       reason ? reason.default_error_condition().value() : ENOTDIR, Access::writing, "--stage");
}

// A symbolic link would redirect the copies to an unexpected place.
void make_folder_of_copies(const fs::path& folder) {
  make_folder(folder);
  require(!fs::is_symlink(folder), Failure::usage,
          "cannot stage the data in '{}': it is a link, and the copies would be stored elsewhere. Remove it, or choose "
          "another --stage.",
          folder.string());
}

std::int64_t bytes_on_disk(const fs::path& path) {
  constexpr std::int64_t unit_bytes = 512;  // of st_blocks, on every file system
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 ? status.st_blocks * unit_bytes : 0;
}

std::int64_t length_of(const fs::path& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 ? status.st_size : -1;
}

// A split being staged.
struct StagedSplit {
  fs::path from;
  fs::path to;
  Manifest manifest;
};

class Staging {
 public:
  Staging(const Communicator& world, const StageOptions& options)
      : world_(world), folder_(options.folder), patience_(std::chrono::duration<double>(options.patience).count()) {
    make_folder(folder_);
  }

  // Returns the folder of the copy.
  fs::path add(Split split, const fs::path& from) {
    Manifest manifest = read_manifest(from);
    fs::path to = folder_ / staged_folder_name(split_name(split), manifest.root_hash);
    make_folder_of_copies(to);
    const StagedSplit& added = splits_.emplace_back(StagedSplit{from, to, std::move(manifest)});
    for (const ShardEntry& entry : added.manifest.shards) {
      ++shards_;
      if (is_copied(to / entry.file, entry.bytes)) {
        remove_unfinished_copies(to, entry);
        continue;
      }
      missing_.emplace_back(&added, &entry);
      missing_bytes_ += entry.bytes;
    }
    return to;
  }

  void run(const std::function<void()>& look) {
    on_all_ranks(world_, [this] { require_room(); });
    const auto of_nodes = [&](double value) { return world_.sum(world_.local_rank() == 0 ? value : 0); };
    const double to_copy = of_nodes(static_cast<double>(missing_bytes_));
    const double shards_to_copy = of_nodes(static_cast<double>(missing_.size()));
    const double shards = of_nodes(shards_);
    const double nodes = of_nodes(1);
    if (to_copy > 0) copy(to_copy, look);
    on_all_ranks(world_, [this] {
      if (world_.local_rank() != 0) return;
      for (const StagedSplit& split : splits_) copy_manifest(split.from, split.to, split.manifest.root_hash);
    });
    log::info("data: staged in '{}' on {:.0f} {}: {:.0f} of {:.0f} {} copied now ({:.1f} MB)", folder_.string(), nodes,
              nodes == 1 ? "node" : "nodes", shards_to_copy, shards, shards == 1 ? "shard" : "shards",
              to_copy / megabyte);
  }

 private:
  struct Missing {
    Missing(const StagedSplit* of, const ShardEntry* shard) : split(of), entry(shard) {}
    fs::path copy() const { return split->to / entry->file; }
    fs::path unfinished() const { return unfinished_copy(split->to, *entry, attempt); }
    std::unique_ptr<ShardCopy> begin() const { return ShardCopy::begin(split->from, split->to, *entry, attempt); }

    const StagedSplit* split;
    const ShardEntry* entry;
    int attempt = 1;  // number of the unfinished copy that is leased or waited for
    // State of another process's copy:
    std::int64_t length = -1;
    Stopwatch since_growth;
    bool reported = false;
  };

  // The partial copies of a killed run count as available space, because they are started again.
  void require_room() const {
    if (world_.local_rank() != 0 || missing_.empty()) return;
    std::int64_t needed = 0;
    for (const Missing& missing : missing_) {
      needed += missing.entry->bytes -
                std::min(missing.entry->bytes, bytes_on_disk(unfinished_copy(missing.split->to, *missing.entry)));
    }
    std::error_code unknown;
    const fs::space_info space = fs::space(folder_, unknown);
    if (unknown || static_cast<double>(space.available) >= static_cast<double>(needed)) return;
    throw system_failure(
        fmt::format("cannot stage the data in '{}'", folder_.string()), ENOSPC, Access::writing,
        fmt::format("{:.1f} MB to copy, {:.1f} MB free", static_cast<double>(missing_bytes_) / megabyte,
                    static_cast<double>(space.available) / megabyte));
  }

  // Copies in rounds. Between rounds all ranks agree whether to continue.
  void copy(double to_copy, const std::function<void()>& look) {
    begin_apart();
    Progress progress("staging", whole_megabytes(to_copy), "MB");
    std::int64_t told = 0;
    for (bool is_done = false; !is_done;) {
      look();
      on_all_ranks(world_, [this] { copy_for_a_round(); });
      rank_status::enter(Phase::meeting);
      is_done = world_.max(missing_.empty() ? 0 : 1) == 0;
      const double copied = std::min(world_.sum(static_cast<double>(copied_bytes_)), to_copy);
      const std::int64_t now = is_done ? whole_megabytes(to_copy) : whole_megabytes(copied);
      progress.add(now - std::exchange(told, now));
    }
    progress.finish();
  }

  // The ranks of a node begin at different places of the list.
  void begin_apart() {
    const std::size_t first =
        missing_.size() * static_cast<std::size_t>(world_.local_rank()) / static_cast<std::size_t>(world_.local_size());
    missing_.splice(missing_.end(), missing_, missing_.begin(),
                    std::next(missing_.begin(), static_cast<std::ptrdiff_t>(first)));
  }

  void copy_for_a_round() {
    rank_status::enter(Phase::staging);
    const Stopwatch watch;
    while (watch.seconds() < round_seconds) {
      if (current_ == nullptr && !begin_next()) {
        std::this_thread::sleep_for(std::chrono::milliseconds(missing_.empty() ? 0 : 50));
        break;
      }
      rank_status::begin_reading(current_shard_);
      const std::int64_t bytes = current_->advance();
      copied_bytes_ += bytes;
      rank_status::mark_progress();
      if (bytes == 0) current_.reset();
    }
    rank_status::end_reading();
  }

  // Removes shards that have been copied meanwhile. Returns whether a shard was found that no other process is copying.
  bool begin_next() {
    for (auto next = missing_.begin(); next != missing_.end();) {
      if (is_copied(next->copy(), next->entry->bytes)) {
        next = missing_.erase(next);
        continue;
      }
      current_shard_ = rank_status::register_shard(next->split->from / next->entry->file);
      current_ = next->begin();
      // Another process may have finished between our check and our lease.
      if (current_ != nullptr && is_copied(next->copy(), next->entry->bytes)) current_.reset();
      if (current_ != nullptr) {
        if (next->attempt > 1) begin_own_copy(*next);
        return true;
      }
      watch_other(*next);
      ++next;
    }
    return false;
  }

  // A copy next to another process's stalled one; it needs additional space.
  void begin_own_copy(const Missing& shard) {
    const fs::path other = unfinished_copy(shard.split->to, *shard.entry, shard.attempt - 1);
    log::warning("'{}' ({}) has not grown for {:.3g} s. This job makes its own copy of '{}'.", other.string(),
                 describe_lease_holder(other), patience_, shard.copy().filename().string());
    std::error_code unknown;
    const fs::space_info space = fs::space(folder_, unknown);
    if (unknown || static_cast<std::int64_t>(space.available) >= shard.entry->bytes) return;
    current_.reset();
    throw system_failure(
        fmt::format("cannot stage '{}'", shard.copy().string()), ENOSPC, Access::writing,
        fmt::format("{:.1f} MB to copy, {:.1f} MB free; the stalled copy of another process also takes space",
                    static_cast<double>(shard.entry->bytes) / megabyte,
                    static_cast<double>(space.available) / megabyte));
  }

  // Another process copies this shard. It may be suspended, or waiting for an unresponsive file system.
  void watch_other(Missing& shard) const {
    const std::int64_t length = length_of(shard.unfinished());
    if (length != std::exchange(shard.length, length)) {
      shard.since_growth = Stopwatch();
      return;
    }
    const double still = shard.since_growth.seconds();
    if (still >= patience_ / 3 && !std::exchange(shard.reported, true) && world_.local_rank() == 0) {
      log::warning(
          "waiting for '{}': another process ({}) copies it to '{}', which has not grown for {:.3g} s. After {:.3g} s "
          "this job makes its own copy.",
          shard.copy().string(), describe_lease_holder(shard.unfinished()), shard.unfinished().string(), still,
          patience_);
    }
    if (still < patience_) return;
    ++shard.attempt;
    shard.length = -1;
    shard.since_growth = Stopwatch();
    shard.reported = false;
  }

  const Communicator& world_;
  fs::path folder_;
  double patience_;                // in seconds
  std::list<StagedSplit> splits_;  // a list, so that addresses are stable
  std::list<Missing> missing_;
  double shards_ = 0;
  std::int64_t missing_bytes_ = 0;
  std::int64_t copied_bytes_ = 0;  // by this rank
  std::unique_ptr<ShardCopy> current_;
  std::int32_t current_shard_ = 0;  // from rank_status::register_shard
};

}  // namespace

SplitFolders stage(const Communicator& world, const StageOptions& options, const std::function<void()>& look) {
  rank_status::enter(Phase::staging);
  look();
  SplitFolders folders = options.from;
  std::optional<Staging> staging;
  on_all_ranks(world, [&] {
    staging.emplace(world, options);
    for (const Split split : options.splits) {
      if (!is_absent(options.from.of(split) / manifest_file)) {
        folders.of(split) = staging->add(split, options.from.of(split));
      }
    }
  });
  staging->run(look);
  return folders;
}

}  // namespace lockstep
