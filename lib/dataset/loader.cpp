#include "dataset/loader.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "dataset/sampler.hpp"

namespace lockstep {
namespace {

// A part by its place in the split: positions [first, first + samples) of `epoch`.
struct PartPlace {
  std::int64_t epoch;
  std::int64_t first;
  std::int64_t samples;
};

// Which samples part number 0, 1, 2, ... of this rank holds, and how they are treated.
class PartPlan {
 public:
  virtual ~PartPlan() = default;
  virtual PartPlace place(std::int64_t part) const = 0;
  virtual std::int64_t sample_at(const PartPlace& place, std::int64_t position) const = 0;
  virtual View view_at(const PartPlace& place, std::int64_t position) const = 0;
};

class TrainingPlan final : public PartPlan {
 public:
  TrainingPlan(std::int64_t samples, const LoaderShare& share, Augmentation augmentation, std::uint64_t seed,
               std::int64_t first_step)
      : samples_(samples), share_(share), augmentation_(augmentation), seed_(seed), first_step_(first_step) {}

  PartPlace place(std::int64_t part) const override {
    const std::int64_t steps_per_epoch = samples_ / share_.global_batch;
    const std::int64_t step = first_step_ + part / share_.parts;
    const std::int64_t part_of_step = share_.first_part + part % share_.parts;
    return {step / steps_per_epoch, step % steps_per_epoch * share_.global_batch + part_of_step * share_.part_size(),
            share_.part_size()};
  }
  std::int64_t sample_at(const PartPlace& place, std::int64_t position) const override {
    return SampleOrder(samples_, seed_, place.epoch).sample_at(position);
  }
  View view_at(const PartPlace& place, std::int64_t position) const override {
    return choose_view(augmentation_, seed_, place.epoch, position);
  }

 private:
  std::int64_t samples_;
  LoaderShare share_;
  Augmentation augmentation_;
  std::uint64_t seed_;
  std::int64_t first_step_;  // counted from the first epoch
};

class EvaluationPlan final : public PartPlan {
 public:
  EvaluationPlan(std::int64_t samples, std::int64_t batch, int rank, int ranks)
      : samples_(samples), batch_(batch), rank_(rank), ranks_(ranks) {}

  PartPlace place(std::int64_t part) const override {
    const std::int64_t batch_of_rank = part % evaluation_batches(samples_, batch_, ranks_);
    const std::int64_t first = std::min((batch_of_rank * ranks_ + rank_) * batch_, samples_);
    return {0, first, std::min(batch_, samples_ - first)};
  }
  std::int64_t sample_at(const PartPlace&, std::int64_t position) const override { return position; }
  View view_at(const PartPlace&, std::int64_t) const override { return {}; }

 private:
  std::int64_t samples_;
  std::int64_t batch_;
  int rank_;
  int ranks_;
};

// Fills parts by a plan.
class PartFiller {
 public:
  PartFiller(const Dataset& dataset, std::unique_ptr<PartPlan> plan)
      : dataset_(dataset),
        plan_(std::move(plan)),
        normalizer_(dataset.manifest().shape, dataset.manifest().mean, dataset.manifest().deviation) {}

  // Every place of `batch` is written: those without a sample get zeros and label -1.
  void fill(std::int64_t part, Batch& batch) const {
    const PartPlace place = plan_->place(part);
    const std::int64_t places = batch.labels.shape()[0];
    const std::size_t image_count = static_cast<std::size_t>(batch.images.shape().count() / places);
    float* image = batch.images.as<float>();
    std::int32_t* const labels = batch.labels.as<std::int32_t>();
    for (std::int64_t i = 0; i < place.samples; ++i, image += image_count) {
      const std::int64_t position = place.first + i;
      const std::int64_t sample = plan_->sample_at(place, position);
      normalizer_.write(dataset_.image(sample), plan_->view_at(place, position), {image, image_count});
      labels[i] = dataset_.label(sample);
    }
    std::fill(image, image + (places - place.samples) * static_cast<std::int64_t>(image_count), 0.0F);
    std::fill(labels + place.samples, labels + places, -1);
    batch.samples = place.samples;
  }

 private:
  const Dataset& dataset_;
  std::unique_ptr<PartPlan> plan_;
  Normalizer normalizer_;
};

struct alignas(Arena::alignment) CacheLine {
  std::array<std::byte, Arena::alignment> bytes;
};

std::vector<CacheLine> reserve_lines(std::int64_t bytes) {
  return std::vector<CacheLine>(static_cast<std::size_t>((bytes + Arena::alignment - 1) / Arena::alignment));
}

// One place of the ring: memory for a part, and the part that it holds.
struct Slot {
  Slot(std::int64_t places, const SampleShape& shape)
      : images(reserve_lines(places * shape.height * shape.width * shape.channels * size_of(DType::f32))),
        labels(reserve_lines(places * size_of(DType::i32))) {
    const Shape dims{places, shape.height, shape.width, shape.channels};
    batch.images =
        Tensor(images.front().bytes.data(), dims.count() * size_of(DType::f32), dims, DType::f32, Layout::images);
    batch.labels =
        Tensor(labels.front().bytes.data(), places * size_of(DType::i32), Shape{places}, DType::i32, Layout::plain);
  }

  std::vector<CacheLine> images;
  std::vector<CacheLine> labels;
  Batch batch;
  std::int64_t part = -1;  // filled and ready
};

// Each thread takes the next part, waits until its slot is free, and fills it alone: threads share nothing but the
// count.
class RingLoader final : public Loader {
 public:
  RingLoader(const Dataset& dataset, std::unique_ptr<PartPlan> plan, std::int64_t places, int threads)
      : filler_(dataset, std::move(plan)) {
    assert(places > 0 && threads > 0);
    // One part is in the caller's hands, one waits for it, and each thread has one in work.
    for (int slot = 0; slot < threads + 2; ++slot) slots_.emplace_back(places, dataset.manifest().shape);
    for (int thread = 0; thread < threads; ++thread) threads_.emplace_back([this] { work(); });
  }
  ~RingLoader() override {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    slot_free_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  RingLoader(const RingLoader&) = delete;
  RingLoader& operator=(const RingLoader&) = delete;

  const Batch& next() override {
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

  double waited_ms() const override { return std::chrono::duration<double, std::milli>(waited_).count(); }

 private:
  Slot& slot_of(std::int64_t part) { return slots_[static_cast<std::size_t>(part) % slots_.size()]; }

  // A thread must not end the program by itself where one rank alone may unwind: what it throws, next() throws. Nothing
  // in this thread is collective, so that unwinding it first is safe on several ranks too.
  void work() {
    try {
      fill_parts();
    } catch (...) {
      const std::lock_guard lock(mutex_);
      failure_ = std::current_exception();
      part_ready_.notify_all();
    }
  }

  void fill_parts() {
    std::unique_lock lock(mutex_);
    while (true) {
      const std::int64_t part = taken_++;
      const auto ring = static_cast<std::int64_t>(slots_.size());
      slot_free_.wait(lock, [&] { return stopping_ || part - ring < std::max<std::int64_t>(current_, 0); });
      if (stopping_) return;
      lock.unlock();
      filler_.fill(part, slot_of(part).batch);
      lock.lock();
      slot_of(part).part = part;
      part_ready_.notify_all();
    }
  }

  PartFiller filler_;
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

}  // namespace

std::unique_ptr<Loader> make_training_loader(const Dataset& dataset, const LoaderShare& share,
                                             Augmentation augmentation, std::uint64_t seed, std::int64_t epoch,
                                             std::int64_t step, int threads) {
  assert(share.total_parts > 0 && share.global_batch % share.total_parts == 0);
  assert(share.parts > 0 && share.first_part >= 0 && share.first_part + share.parts <= share.total_parts);
  const std::int64_t samples = dataset.samples();
  require(samples >= share.global_batch, Failure::usage,
          "the training set has {} samples but the global batch {} (no step would ever be complete). Choose a smaller "
          "global batch?",
          samples, share.global_batch);
  const std::int64_t first_step = epoch * (samples / share.global_batch) + step;
  auto plan = std::make_unique<TrainingPlan>(samples, share, augmentation, seed, first_step);
  return std::make_unique<RingLoader>(dataset, std::move(plan), share.part_size(), threads);
}

std::unique_ptr<Loader> make_evaluation_loader(const Dataset& dataset, std::int64_t batch, int rank, int ranks,
                                               int threads) {
  assert(batch > 0 && rank >= 0 && rank < ranks);
  auto plan = std::make_unique<EvaluationPlan>(dataset.samples(), batch, rank, ranks);
  return std::make_unique<RingLoader>(dataset, std::move(plan), batch, threads);
}

std::int64_t evaluation_batches(std::int64_t samples, std::int64_t batch, int ranks) {
  const std::int64_t per_round = batch * ranks;
  return (samples + per_round - 1) / per_round;
}

}  // namespace lockstep
