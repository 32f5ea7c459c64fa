// The state of this rank: a record in its node's memory, which other ranks read without its cooperation.
//
// The rank uses plain stores, no locks and no system calls. The record is therefore valid even if the rank hangs or is
// stopped. A reader may see half of a change between two stores; the next read corrects it.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "device/sum_marks.hpp"

namespace lockstep {

class SpanLog;

// What the main thread of a rank is doing. A phase for which waits_for_others() is true ends only when other ranks
// arrive.
enum class Phase : std::int32_t {
  starting,
  staging,
  opening_data,
  meeting,  // start-up: waits for the other ranks, or for a result of rank 0
  measuring,
  reading,
  forward,
  backward,
  sharing_norms,  // statistics of a batch norm, with the ranks of its group
  reducing,
  updating,
  gathering_weights,  // of sharded optimizers, from the ranks that updated them
  testing,
  gathering,  // results from all ranks
  saving,
};
inline constexpr std::size_t phase_count = 15;

std::string_view describe(Phase phase);  // "in forward", "summing gradients"
bool waits_for_others(Phase phase);

std::int64_t monotonic_ns() noexcept;  // CLOCK_MONOTONIC, used by RankStatus

// Which ranks have received SIGTERM, as far as a rank knows: none, itself, or every rank of the job.
enum class SigtermReceivers : std::int32_t { none, itself, all };

// The ranks that train together. Their states depend on each other. A rank of another training in the same job waits
// for reasons of its own.
struct Team {
  int first = -1;  // the job's rank that is rank 0 of the training; -1 if in no training
  int size = 0;

  bool operator==(const Team&) const = default;
};

// All zero before the first store. Each thread that loads samples has a cache line of its own, because it stores often.
// It takes the lowest free one at its first read, until it ends.
struct alignas(128) RankStatus {
  // Enough for the main thread and three loaders (training, test, validation) of at most 256 threads each.
  static constexpr std::size_t max_readers = 1024;
  struct alignas(64) Reader {
    std::atomic<std::int32_t> shard;  // what the thread reads now: register_shard() + 1, or 0
    std::atomic<std::uint64_t> progress;
  };
  // A copy of the device's record of its sums (SumMarks), written by copy_device_marks().
  struct alignas(64) Device {
    std::atomic<bool> is_shown;
    std::atomic<std::uint64_t> begun;
    std::atomic<std::uint64_t> bucket;
    std::atomic<std::uint64_t> begun_ns;
    std::atomic<std::uint64_t> ended;
    std::atomic<std::uint64_t> ended_ns;
  };

  std::atomic<int> code;  // running, done, or the exit code of a failure that the rank reported
  std::atomic<SigtermReceivers> sigterm_receivers;
  std::atomic<std::int32_t> team_first;  // Team::first + 1
  std::atomic<std::int32_t> team_size;
  std::atomic<Phase> phase;
  std::atomic<std::int64_t> main_thread_ns;  // CPU time, if the watcher publishes it
  std::atomic<std::uint64_t> progress;       // grows whenever the main thread makes progress
  std::atomic<std::int64_t> step;            // the last one begun, counted from 1; 0 before the first
  std::atomic<std::int64_t> sum;             // number of gradient sums begun so far
  std::atomic<std::int64_t> since_ns;        // when the phase began, by the node's monotonic clock
  std::array<std::atomic<std::int64_t>, phase_count> spent_ns;  // in each phase so far, without the current one
  std::atomic<std::uint32_t> readers_used;                      // the first `readers_used` of `readers` have been used
  Device device;
  std::array<Reader, max_readers> readers;

  std::span<const Reader> readers_in_use() const { return std::span(readers).first(readers_used); }

  static constexpr int running = 0;
  static constexpr int done = -1;
};
static_assert(std::atomic<Phase>::is_always_lock_free && std::atomic<std::int64_t>::is_always_lock_free);

// The record is global, because loader threads and layers far from main write it.
namespace rank_status {

// While it exists, this rank belongs to `team`. Its steps and sums count from zero.
class TeamScope {
 public:
  explicit TeamScope(const Team& team);
  TeamScope(const TeamScope&) = delete;
  TeamScope& operator=(const TeamScope&) = delete;
  ~TeamScope();
};

// For the main thread.
void enter(Phase phase) noexcept;
void set_step(std::int64_t step) noexcept;  // counted from 0
void begin_sum() noexcept;
void end_sum() noexcept;        // the sum was begun; it may complete later
void mark_progress() noexcept;  // progress within a phase

// From any thread: it begins to read from a shard of register_shard(); it has stopped reading.
void begin_reading(std::int32_t shard) noexcept;
void end_reading() noexcept;

// While it exists, copy_device_marks() copies the device's marks. Null: the device has none.
class PublishedMarks {
 public:
  explicit PublishedMarks(SumMarks* shown);
  PublishedMarks(const PublishedMarks&) = delete;
  PublishedMarks& operator=(const PublishedMarks&) = delete;
  ~PublishedMarks();

 private:
  SumMarks* shown_;
};
// Thread-safe. The watcher calls it, so that it costs no step any time.
void copy_device_marks();

// While it exists, the main thread's phases and sums are logged, numbered from 1. The log must outlive it.
class SpanLogScope {
 public:
  explicit SpanLogScope(SpanLog* log);
  SpanLogScope(const SpanLogScope&) = delete;
  SpanLogScope& operator=(const SpanLogScope&) = delete;
  ~SpanLogScope();
};

// A 31-bit hash of the path, so that a number has the same meaning on every rank. If two paths collide, the first name
// is reported. The probability for a thousand paths is 1 in 4000.
std::int32_t register_shard(const std::filesystem::path& path);
std::string shard_name(std::int32_t shard);  // empty if this rank has named no such shard

// Moves the record to memory that others can read, or (nullptr) back to memory of this process.
void move_to(RankStatus* record);
RankStatus& record() noexcept;

}  // namespace rank_status

}  // namespace lockstep
