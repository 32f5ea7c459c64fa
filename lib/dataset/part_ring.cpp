#include "dataset/part_ring.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace lockstep {

PartRing::Slot::Slot(std::int64_t places, const SampleShape& shape)
    : images(reserve(places * shape.height * shape.width * shape.channels * size_of(DType::f32))),
      labels(reserve(places * size_of(DType::i32))) {
  const Shape dims{places, shape.height, shape.width, shape.channels};
  batch.images =
      Tensor(images.front().bytes.data(), dims.count() * size_of(DType::f32), dims, DType::f32, Layout::images);
  batch.labels =
      Tensor(labels.front().bytes.data(), places * size_of(DType::i32), Shape{places}, DType::i32, Layout::plain);
}

std::vector<PartRing::CacheLine> PartRing::Slot::reserve(std::int64_t bytes) {
  return std::vector<CacheLine>(static_cast<std::size_t>((bytes + Arena::alignment - 1) / Arena::alignment));
}

PartRing::PartRing(FillPart fill, std::int64_t places, const SampleShape& shape, int threads) : fill_(std::move(fill)) {
  assert(places > 0 && threads > 0);
  // One part is in the caller's hands, one waits for it, and each thread has one in work.
  for (int slot = 0; slot < threads + 2; ++slot) slots_.emplace_back(places, shape);
  for (int thread = 0; thread < threads; ++thread) threads_.emplace_back([this] { work(); });
}

PartRing::~PartRing() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  slot_free_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

const Batch& PartRing::next() {
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
  return slot.batch;
}

double PartRing::waited_ms() const { return std::chrono::duration<double, std::milli>(waited_).count(); }

// A thread must not end the program by itself where one rank alone may unwind. Nothing in it is collective, so that
// unwinding it first is safe on several ranks too.
void PartRing::work() {
  try {
    fill_parts();
  } catch (...) {
    const std::lock_guard lock(mutex_);
    failure_ = std::current_exception();
    part_ready_.notify_all();
  }
}

void PartRing::fill_parts() {
  std::unique_lock lock(mutex_);
  while (true) {
    const std::int64_t part = taken_++;
    const auto ring = static_cast<std::int64_t>(slots_.size());
    slot_free_.wait(lock, [&] { return stopping_ || part - ring < std::max<std::int64_t>(current_, 0); });
    if (stopping_) return;
    lock.unlock();
    fill_(part, slot_of(part).batch);
    lock.lock();
    slot_of(part).part = part;
    part_ready_.notify_all();
  }
}

}  // namespace lockstep
