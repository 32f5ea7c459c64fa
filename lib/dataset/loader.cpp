#include "dataset/loader.hpp"

#include <algorithm>
#include <cassert>
#include <memory>
#include <utility>

#include "base/error.hpp"
#include "dataset/part_ring.hpp"
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
    const auto image_count = static_cast<std::size_t>(batch.images.shape().count() / places);
    auto* image = batch.images.as<float>();
    auto* const labels = batch.labels.as<std::int32_t>();
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

std::unique_ptr<Loader> make_ring(const Dataset& dataset, std::unique_ptr<PartPlan> plan, std::int64_t places,
                                  int threads) {
  const auto filler = std::make_shared<const PartFiller>(dataset, std::move(plan));
  return std::make_unique<PartRing>([filler](std::int64_t part, Batch& batch) { filler->fill(part, batch); }, places,
                                    dataset.manifest().shape, threads);
}

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
  return make_ring(dataset, std::move(plan), share.part_size(), threads);
}

std::unique_ptr<Loader> make_evaluation_loader(const Dataset& dataset, std::int64_t batch, int rank, int ranks,
                                               int threads) {
  assert(batch > 0 && rank >= 0 && rank < ranks);
  auto plan = std::make_unique<EvaluationPlan>(dataset.samples(), batch, rank, ranks);
  return make_ring(dataset, std::move(plan), batch, threads);
}

std::int64_t evaluation_batches(std::int64_t samples, std::int64_t batch, int ranks) {
  const std::int64_t per_round = batch * ranks;
  return (samples + per_round - 1) / per_round;
}

}  // namespace lockstep
