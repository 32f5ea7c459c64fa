// A ring of parts that threads fill ahead of need. All memory is there from the start.
#pragma once

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "dataset/loader.hpp"

namespace lockstep {

// Fills the batch of part number 0, 1, 2, ...; called by several threads at once, for different parts.
using FillPart = std::function<void(std::int64_t part, Batch& batch)>;

// Each thread takes the next part, waits until its slot is free, and fills it alone: threads share nothing but the
// count. What `fill` throws, next() throws.
class PartRing final : public Loader {
 public:
  // A part has room for `places` samples of `shape`.
  PartRing(FillPart fill, std::int64_t places, const SampleShape& shape, int threads);
  ~PartRing() override;
  PartRing(const PartRing&) = delete;
  PartRing& operator=(const PartRing&) = delete;

  const Batch& next() override;
  double waited_ms() const override;

 private:
  struct alignas(Arena::alignment) CacheLine {
    std::array<std::byte, Arena::alignment> bytes;
  };
  // Memory for a part, and the part that it holds.
  struct Slot {
    Slot(std::int64_t places, const SampleShape& shape);
    static std::vector<CacheLine> reserve(std::int64_t bytes);

    std::vector<CacheLine> images;
    std::vector<CacheLine> labels;
    Batch batch;
    std::int64_t part = -1;  // filled and ready
  };

  Slot& slot_of(std::int64_t part) { return slots_[static_cast<std::size_t>(part) % slots_.size()]; }
  void work();
  void fill_parts();

  FillPart fill_;
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

}  // namespace lockstep
