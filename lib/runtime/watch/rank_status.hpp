// Where this rank stands: a record in memory of its node, which other ranks read without its help.
//
// The rank writes with plain stores, no lock and no system call, so a rank that hangs, or is stopped, has said where.
// Whoever reads between two stores sees half of a change; the next look puts that right.
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

// What the main thread of a rank does. In a phase for which waits_for_others() is true it goes on when others come.
enum class Phase : std::int32_t {
  starting,
  staging,
  opening_data,
  meeting,  // start-up: the others, or what rank 0 found out
  measuring,
  reading,
  forward,
  backward,
  sharing_norms,  // statistics of a norm, with the ranks of its group
  reducing,
  updating,
  testing,
  gathering,  // results of ranks
  saving,
};
inline constexpr std::size_t phase_count = 14;

std::string_view describe(Phase phase);  // "in forward", "summing gradients"
bool waits_for_others(Phase phase);

std::int64_t monotonic_ns() noexcept;  // the clock of RankStatus

// Who has been told to end, by SIGTERM, as far as a rank knows: nobody, itself, or every rank of the job.
enum class ToldToEnd : std::int32_t { nobody, itself, all };

// The ranks that train together. What one of them does says something of the others; a rank of another training in the
// same job is elsewhere for reasons of its own.
struct Team {
  int first = -1;  // the rank of the job that is the training's rank 0; -1: in no training
  int size = 0;

  bool operator==(const Team&) const = default;
};

// All zero before the first store. A thread that loads samples has a cache line to itself, for it stores often: the
// lowest that is free when it first reads, until it ends.
struct alignas(128) RankStatus {
  // The main thread and three loaders (training, test, validation) of at most 256 threads each fit in.
  static constexpr std::size_t most_readers = 1024;
  struct alignas(64) Reader {
    std::atomic<std::int32_t> shard;  // what a thread reads now: number of name_shard() + 1, or 0
    std::atomic<std::uint64_t> progress;
  };
  // A copy of what the rank's device writes of its sums (SumMarks), by copy_device_marks().
  struct alignas(64) Device {
    std::atomic<bool> is_shown;
    std::atomic<std::uint64_t> begun;
    std::atomic<std::uint64_t> bucket;
    std::atomic<std::uint64_t> begun_ns;
    std::atomic<std::uint64_t> ended;
    std::atomic<std::uint64_t> ended_ns;
  };

  std::atomic<int> code;  // running, done, or the exit code of a failure that the rank reported
  std::atomic<ToldToEnd> told_to_end;
  std::atomic<std::int32_t> team_first;  // Team::first + 1
  std::atomic<std::int32_t> team_size;
  std::atomic<Phase> phase;
  std::atomic<std::int64_t> main_thread_ns;                     // of processor time, where the watcher shows it
  std::atomic<std::uint64_t> progress;                          // grows with whatever the main thread gets done
  std::atomic<std::int64_t> step;                               // the last one begun, counted from 1; 0 before
  std::atomic<std::int64_t> sum;                                // sums of gradients begun so far
  std::atomic<std::int64_t> since_ns;                           // when the phase began, by the node's monotonic clock
  std::array<std::atomic<std::int64_t>, phase_count> spent_ns;  // in each phase so far, the present one left out
  std::atomic<std::uint32_t> readers_used;                      // so many of `readers`, from the first on, ever were
  Device device;
  std::array<Reader, most_readers> readers;

  std::span<const Reader> readers_in_use() const { return std::span(readers).first(readers_used); }

  static constexpr int running = 0;
  static constexpr int done = -1;
};
static_assert(std::atomic<Phase>::is_always_lock_free && std::atomic<std::int64_t>::is_always_lock_free);

// One record for the process, because threads of the loader and layers far from main write it.
namespace rank_status {

// While it lives this rank is of `team`; its steps and sums count from zero.
class InTeam {
 public:
  explicit InTeam(const Team& team);
  InTeam(const InTeam&) = delete;
  InTeam& operator=(const InTeam&) = delete;
  ~InTeam();
};

// The main thread's.
void enter(Phase phase) noexcept;
void set_step(std::int64_t step) noexcept;  // counted from 0
void begin_sum() noexcept;
void end_sum() noexcept;  // it was begun; the sum itself may take longer
void get_on() noexcept;   // within a phase

// From any thread: it reads from a shard, of name_shard(); it reads from none.
void begin_reading(std::int32_t shard) noexcept;
void end_reading() noexcept;

// While this lives copy_device_marks() copies the device's marks. Null: the device has none.
class ShownMarks {
 public:
  explicit ShownMarks(SumMarks* shown);
  ShownMarks(const ShownMarks&) = delete;
  ShownMarks& operator=(const ShownMarks&) = delete;
  ~ShownMarks();

 private:
  SumMarks* shown_;
};
// From any thread. The watcher calls it, so that no step pays for it.
void copy_device_marks();

// While this lives the main thread's phases and sums go into a log, numbered from 1. It outlives this.
class ShownSpans {
 public:
  explicit ShownSpans(SpanLog* log);
  ShownSpans(const ShownSpans&) = delete;
  ShownSpans& operator=(const ShownSpans&) = delete;
  ~ShownSpans();
};

// A number that depends on the path alone, so that it means the same on every rank, whatever else that rank reads. Of
// 31 bits: where two paths share one, of a thousand in one case of four thousand, the first that came is told.
std::int32_t name_shard(const std::filesystem::path& path);
std::string shard_name(std::int32_t shard);  // empty where this rank has named no such shard

// The record goes to memory that others see, or (nullptr) back to memory of this process.
void move_to(RankStatus* record);
RankStatus& record() noexcept;

}  // namespace rank_status

}  // namespace lockstep
