#include "runtime/watch/rank_status.hpp"

#include <xxhash.h>

#include <ctime>
#include <map>
#include <mutex>

#include "device/profiler_range.hpp"
#include "runtime/trace/span_log.hpp"

namespace lockstep {
namespace {

RankStatus own;
std::atomic<RankStatus*> current = &own;

std::mutex names_mutex;
std::map<std::int32_t, std::string> names;  // guarded by names_mutex

std::mutex marks_mutex;
SumMarks* shown_marks = nullptr;  // guarded by marks_mutex, and so is its target

// Used by the main thread only, which alone enters phases and begins sums.
struct Tracing {
  SpanLog* log = nullptr;  // null if there is no trace
  std::int64_t step = 0;   // the step in which the phase began
  std::int64_t sum_since_ns = 0;
  std::int32_t sums = 0;
  std::array<std::int32_t, phase_count> entered{};
};
Tracing tracing;

// Likewise. A phase may begin within a layer's range, so they do not nest.
ProfilerPhases profiled_phases;
ProfilerPhases profiled_sums;

constexpr auto relaxed = std::memory_order_relaxed;

// There is only one writer, so no atomic read-modify-write is needed.
template <typename Value>
void add(std::atomic<Value>& target, Value value) {
  target.store(target.load(relaxed) + value, relaxed);
}

std::array<std::atomic<bool>, RankStatus::max_readers> taken;  // of the process, wherever the record is

// The index of a thread among the readers, free again when the thread ends. If none is free, threads share the last
// one.
class ReaderPlace {
 public:
  ReaderPlace() {
    while (index_ + 1 < taken.size() && taken[index_].exchange(true)) ++index_;
  }
  ReaderPlace(const ReaderPlace&) = delete;
  ReaderPlace& operator=(const ReaderPlace&) = delete;
  ~ReaderPlace() {
    rank_status::record().readers[index_].shard.store(0, relaxed);
    taken[index_] = false;
  }

  std::size_t index() const { return index_; }

 private:
  std::size_t index_ = 0;
};

RankStatus::Reader& reader_of_this_thread() {
  thread_local const ReaderPlace place;
  RankStatus& status = rank_status::record();
  const auto needed = static_cast<std::uint32_t>(place.index()) + 1;
  std::uint32_t used = status.readers_used.load(relaxed);
  while (used < needed && !status.readers_used.compare_exchange_weak(used, needed, relaxed)) {
  }
  return status.readers[place.index()];
}

void copy(const RankStatus& from, RankStatus& to) {
  to.team_first.store(from.team_first.load(relaxed), relaxed);
  to.team_size.store(from.team_size.load(relaxed), relaxed);
  to.phase.store(from.phase.load(relaxed), relaxed);
  to.progress.store(from.progress.load(relaxed), relaxed);
  to.step.store(from.step.load(relaxed), relaxed);
  to.sum.store(from.sum.load(relaxed), relaxed);
  to.since_ns.store(from.since_ns.load(relaxed), relaxed);
  for (std::size_t phase = 0; phase < phase_count; ++phase) {
    to.spent_ns[phase].store(from.spent_ns[phase].load(relaxed), relaxed);
  }
}

}  // namespace

std::string_view describe(Phase phase) {
  static constexpr std::array<std::string_view, phase_count> words = {"starting",
                                                                      "staging the data",
                                                                      "opening the data",
                                                                      "meeting the other ranks",
                                                                      "measuring kernels",
                                                                      "waiting for data",
                                                                      "in forward",
                                                                      "in backward",
                                                                      "gathering statistics of norms",
                                                                      "summing gradients",
                                                                      "updating weights",
                                                                      "gathering weights",
                                                                      "testing",
                                                                      "gathering results",
                                                                      "writing files"};
  const auto index = static_cast<std::size_t>(phase);
  return index < words.size() ? words[index] : "somewhere";
}

std::int64_t monotonic_ns() noexcept {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

bool waits_for_others(Phase phase) {
  return phase == Phase::meeting || phase == Phase::sharing_norms || phase == Phase::reducing ||
         phase == Phase::gathering_weights || phase == Phase::gathering;
}

namespace rank_status {

TeamScope::TeamScope(const Team& team) {
  RankStatus& status = record();
  status.step.store(0, relaxed);
  status.sum.store(0, relaxed);
  status.team_size.store(team.size, relaxed);
  status.team_first.store(team.first + 1, relaxed);
}

TeamScope::~TeamScope() { record().team_first.store(0, relaxed); }

void enter(Phase phase) noexcept {
  RankStatus& status = record();
  const std::int64_t now = monotonic_ns();
  const auto before = static_cast<std::size_t>(status.phase.load(relaxed));
  const std::int64_t since = status.since_ns.load(relaxed);
  if (since != 0) add(status.spent_ns[before], now - since);
  if (tracing.log != nullptr) {
    tracing.log->add({since, now, tracing.step, static_cast<std::int32_t>(before), ++tracing.entered[before]});
    tracing.step = status.step.load(relaxed);
  }
  status.since_ns.store(now, relaxed);
  status.phase.store(phase, relaxed);
  profiled_phases.enter(describe(phase));
  mark_progress();
}

void set_step(std::int64_t step) noexcept { record().step.store(step + 1, relaxed); }

void begin_sum() noexcept {
  add(record().sum, std::int64_t{1});
  mark_progress();
  profiled_sums.enter("starting a sum");
  if (tracing.log == nullptr) return;
  ++tracing.sums;
  tracing.sum_since_ns = monotonic_ns();
}

void end_sum() noexcept {
  profiled_sums.leave();
  if (tracing.log == nullptr) return;
  tracing.log->add({tracing.sum_since_ns, monotonic_ns(), tracing.step, Span::starting_sum, tracing.sums});
}

void mark_progress() noexcept { add(record().progress, std::uint64_t{1}); }

void begin_reading(std::int32_t shard) noexcept {
  RankStatus::Reader& reader = reader_of_this_thread();
  reader.shard.store(shard + 1, relaxed);
  add(reader.progress, std::uint64_t{1});
}

void end_reading() noexcept { reader_of_this_thread().shard.store(0, relaxed); }

std::int32_t register_shard(const std::filesystem::path& path) {
  const std::string name = path.string();
  const auto number = static_cast<std::int32_t>(XXH3_64bits(name.data(), name.size()) % 0x7fffffff);
  const std::lock_guard lock(names_mutex);
  names.emplace(number, name);
  return number;
}

std::string shard_name(std::int32_t shard) {
  const std::lock_guard lock(names_mutex);
  const auto known = names.find(shard);
  return known == names.end() ? std::string() : known->second;
}

PublishedMarks::PublishedMarks(SumMarks* shown) : shown_(shown) {
  const std::lock_guard lock(marks_mutex);
  shown_marks = shown;
}

PublishedMarks::~PublishedMarks() {
  const std::lock_guard lock(marks_mutex);
  if (shown_marks != shown_) return;
  shown_marks = nullptr;
  record().device.is_shown.store(false, relaxed);
}

SpanLogScope::SpanLogScope(SpanLog* log) {
  enter(record().phase.load(relaxed));  // the first span begins here
  tracing = {};
  tracing.log = log;
  tracing.step = record().step.load(relaxed);
}

SpanLogScope::~SpanLogScope() { tracing = {}; }

void copy_device_marks() {
  const std::lock_guard lock(marks_mutex);
  if (shown_marks == nullptr) return;
  const SumMarks now = read_marks(*shown_marks);
  RankStatus::Device& device = record().device;
  device.begun.store(now.begun, relaxed);
  device.bucket.store(now.bucket, relaxed);
  device.begun_ns.store(now.begun_ns, relaxed);
  device.ended.store(now.ended, relaxed);
  device.ended_ns.store(now.ended_ns, relaxed);
  device.is_shown.store(true, relaxed);
}

void move_to(RankStatus* record) {
  RankStatus& target = record == nullptr ? own : *record;
  copy(rank_status::record(), target);
  if (target.since_ns.load(relaxed) == 0) target.since_ns.store(monotonic_ns(), relaxed);
  current.store(&target, relaxed);
}

RankStatus& record() noexcept { return *current.load(relaxed); }

}  // namespace rank_status

}  // namespace lockstep
