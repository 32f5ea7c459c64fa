// A ring of parts that threads fill ahead of need. All memory is there from the start.
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

namespace lockstep {

// Each thread takes the next part, waits until its slot is free, and fills it alone: threads share nothing but the
// count. `Part` is the memory of a part; it stays where it is.
template <typename Part>
class PartRing {
 public:
  // Fills part number 0, 1, 2, ...; called by several threads at once, for different parts. What it throws, next()
  // throws, after the parts that were whole.
  using Fill = std::function<void(std::int64_t part, Part& memory)>;

  // `make` gives the memory of one part.
  PartRing(const std::function<Part()>& make, Fill fill, int threads);
  ~PartRing();
  PartRing(const PartRing&) = delete;
  PartRing& operator=(const PartRing&) = delete;

  // Waits if the threads are behind. Valid until the next call.
  const Part& next();
  double waited_ms() const { return std::chrono::duration<double, std::milli>(waited_).count(); }

 private:
  struct Slot {
    Part memory;
    std::int64_t part = -1;  // filled and ready
  };

  Slot& slot_of(std::int64_t part) { return slots_[static_cast<std::size_t>(part) % slots_.size()]; }
  void work();
  void fill_parts();

  Fill fill_;
  std::vector<Slot> slots_;
  std::vector<std::thread> threads_;

  std::mutex mutex_;  // guards everything below and Slot::part
  std::condition_variable slot_free_;
  std::condition_variable part_ready_;
  std::int64_t current_ = -1;  // the part in the caller's hands
  std::int64_t taken_ = 0;     // the next part that a thread takes
  bool stopping_ = false;
  std::exception_ptr failure_;
  std::chrono::steady_clock::duration waited_{};  // the caller's alone
};

template <typename Part>
PartRing<Part>::PartRing(const std::function<Part()>& make, Fill fill, int threads) : fill_(std::move(fill)) {
  assert(threads > 0);
  // One part is in the caller's hands, one waits for it, and each thread has one in work.
  slots_.reserve(static_cast<std::size_t>(threads) + 2);
  for (int slot = 0; slot < threads + 2; ++slot) slots_.push_back({make()});
  for (int thread = 0; thread < threads; ++thread) threads_.emplace_back([this] { work(); });
}

template <typename Part>
PartRing<Part>::~PartRing() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  slot_free_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

template <typename Part>
const Part& PartRing<Part>::next() {
  std::unique_lock lock(mutex_);
  const std::int64_t part = ++current_;
  slot_free_.notify_all();  // the caller has done with the part before
  Slot& slot = slot_of(part);
  const auto ready = [&] { return slot.part == part || failure_ != nullptr; };
  if (!ready()) {
    const auto start = std::chrono::steady_clock::now();
    part_ready_.wait(lock, ready);
    waited_ += std::chrono::steady_clock::now() - start;
  }
  if (slot.part != part) std::rethrow_exception(failure_);
  return slot.memory;
}

// A thread must not end the program by itself where one rank alone may unwind. Nothing in it is collective, so that
// unwinding it first is safe on several ranks too.
template <typename Part>
void PartRing<Part>::work() {
  try {
    fill_parts();
  } catch (...) {
    const std::lock_guard lock(mutex_);
    failure_ = std::current_exception();
    part_ready_.notify_all();
  }
}

template <typename Part>
void PartRing<Part>::fill_parts() {
  std::unique_lock lock(mutex_);
  while (true) {
    const std::int64_t part = taken_++;
    const auto ring = static_cast<std::int64_t>(slots_.size());
    slot_free_.wait(lock, [&] { return stopping_ || part - ring < std::max<std::int64_t>(current_, 0); });
    if (stopping_) return;
    lock.unlock();
    fill_(part, slot_of(part).memory);
    lock.lock();
    slot_of(part).part = part;
    part_ready_.notify_all();
  }
}

}  // namespace lockstep
