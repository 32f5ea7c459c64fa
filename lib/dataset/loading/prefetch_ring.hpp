// A ring of micro-batches that threads fill ahead of need. All memory is allocated at construction.
#pragma once

#include <algorithm>
#include <cassert>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "device/profiler_range.hpp"

namespace lockstep {

// When a micro-batch may be filled: as soon as there is a free slot, or only once it is allowed as well.
enum class PrefetchTrigger : std::uint8_t { free_slot, allowed };

// Each thread takes the next micro-batch, waits until its slot is free, and fills it alone. Threads share only the
// counter. `MicroBatch` is the memory of a micro-batch, and is never moved.
template <typename MicroBatch>
class PrefetchRing {
 public:
  // Fills micro-batch number 0, 1, 2, .... Called concurrently for different micro-batches. next() rethrows its
  // exceptions, after the micro-batches that were completed before.
  using Fill = std::function<void(std::int64_t micro_batch, MicroBatch& memory)>;

  // `make` allocates the memory of one micro-batch.
  PrefetchRing(const std::function<MicroBatch()>& make, Fill fill, int threads,
               PrefetchTrigger trigger = PrefetchTrigger::free_slot);
  ~PrefetchRing();
  PrefetchRing(const PrefetchRing&) = delete;
  PrefetchRing& operator=(const PrefetchRing&) = delete;

  // Blocks if the threads are behind. Valid until the next call.
  const MicroBatch& next();
  // Allows the next micro-batch.
  void allow_one();
  double waited_ms() const { return std::chrono::duration<double, std::milli>(waited_).count(); }

 private:
  struct Slot {
    MicroBatch memory;
    std::int64_t micro_batch = -1;  // the micro-batch that is filled and ready
  };

  Slot& slot_of(std::int64_t micro_batch) { return slots_[static_cast<std::size_t>(micro_batch) % slots_.size()]; }
  void work();
  void fill_micro_batches();

  Fill fill_;
  PrefetchTrigger trigger_;
  std::vector<Slot> slots_;
  std::vector<std::thread> threads_;

  std::mutex mutex_;  // guards everything below, and Slot::micro_batch
  std::condition_variable slot_free_;
  std::condition_variable micro_batch_ready_;
  std::int64_t current_ = -1;  // the micro-batch that the caller holds
  std::int64_t taken_ = 0;     // the next micro-batch that a thread will take
  std::int64_t allowed_ = 0;   // number of micro-batches
  bool stopping_ = false;
  std::exception_ptr failure_;
  std::chrono::steady_clock::duration waited_{};  // used by the caller only
};

template <typename MicroBatch>
PrefetchRing<MicroBatch>::PrefetchRing(const std::function<MicroBatch()>& make, Fill fill, int threads,
                                       PrefetchTrigger trigger)
    : fill_(std::move(fill)), trigger_(trigger) {
  assert(threads > 0);
  // One slot for the micro-batch that the caller holds, one for a finished one, and one per thread.
  slots_.reserve(static_cast<std::size_t>(threads) + 2);
  for (int slot = 0; slot < threads + 2; ++slot) slots_.push_back({make()});
  for (int thread = 0; thread < threads; ++thread) threads_.emplace_back([this] { work(); });
}

template <typename MicroBatch>
PrefetchRing<MicroBatch>::~PrefetchRing() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  slot_free_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

template <typename MicroBatch>
const MicroBatch& PrefetchRing<MicroBatch>::next() {
  std::unique_lock lock(mutex_);
  const std::int64_t micro_batch = ++current_;
  slot_free_.notify_all();  // the caller no longer uses the previous micro-batch
  Slot& slot = slot_of(micro_batch);
  const auto ready = [&] { return slot.micro_batch == micro_batch || failure_ != nullptr; };
  if (!ready()) {
    const auto start = std::chrono::steady_clock::now();
    micro_batch_ready_.wait(lock, ready);
    waited_ += std::chrono::steady_clock::now() - start;
  }
  if (slot.micro_batch != micro_batch) std::rethrow_exception(failure_);
  return slot.memory;
}

template <typename MicroBatch>
void PrefetchRing<MicroBatch>::allow_one() {
  {
    const std::lock_guard lock(mutex_);
    ++allowed_;
  }
  slot_free_.notify_all();
}

// An exception must not terminate the program from this thread, so the caller's thread rethrows it. Nothing here is
// collective, so unwinding is safe even if only one rank does it.
template <typename MicroBatch>
void PrefetchRing<MicroBatch>::work() {
  try {
    fill_micro_batches();
  } catch (...) {
    const std::lock_guard lock(mutex_);
    failure_ = std::current_exception();
    micro_batch_ready_.notify_all();
  }
}

template <typename MicroBatch>
void PrefetchRing<MicroBatch>::fill_micro_batches() {
  std::unique_lock lock(mutex_);
  while (true) {
    const std::int64_t micro_batch = taken_++;
    const auto ring = static_cast<std::int64_t>(slots_.size());
    slot_free_.wait(lock, [&] {
      const bool is_allowed = trigger_ == PrefetchTrigger::free_slot || micro_batch < allowed_;
      return stopping_ || (is_allowed && micro_batch - ring < std::max<std::int64_t>(current_, 0));
    });
    if (stopping_) return;
    lock.unlock();
    {
      const ProfilerRange range("load a micro-batch");
      fill_(micro_batch, slot_of(micro_batch).memory);
    }
    lock.lock();
    slot_of(micro_batch).micro_batch = micro_batch;
    micro_batch_ready_.notify_all();
  }
}

}  // namespace lockstep
