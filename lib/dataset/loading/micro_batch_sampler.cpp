#include "dataset/loading/micro_batch_sampler.hpp"

#include <algorithm>
#include <cassert>

#include "dataset/loading/sampler.hpp"

namespace lockstep {
namespace {

class TrainingSampler final : public MicroBatchSampler {
 public:
  TrainingSampler(std::int64_t samples, const LoaderShare& share, std::uint64_t seed, std::int64_t first_step,
                  const std::optional<BlockShuffle>& blocks, int steps_ahead)
      : samples_(samples),
        share_(share),
        seed_(seed),
        first_step_(first_step),
        blocks_(blocks),
        steps_ahead_(steps_ahead) {}

  MicroBatchRange place(std::int64_t micro_batch) const override {
    const std::int64_t steps_per_epoch = samples_ / share_.global_batch;
    const std::int64_t step = first_step_ + micro_batch / share_.micro_batches;
    const std::int64_t micro_batch_of_step = share_.first_micro_batch + micro_batch % share_.micro_batches;
    return {step / steps_per_epoch,
            step % steps_per_epoch * share_.global_batch + micro_batch_of_step * share_.micro_batch_size(),
            share_.micro_batch_size()};
  }
  std::int64_t sample_at(const MicroBatchRange& place, std::int64_t position) const override {
    return blocks_ ? block_order(place).sample_at(position)
                   : SampleOrder(samples_, seed_, place.epoch).sample_at(position);
  }
  std::optional<SampleRange> needed_ahead(const MicroBatchRange& place, std::int64_t position) const override {
    if (blocks_) return block_order(place).block_ahead(position);
    const std::int64_t epoch_length = samples_ / share_.global_batch * share_.global_batch;
    const std::int64_t ahead = position + steps_ahead_ * share_.global_batch;
    const SampleOrder order(samples_, seed_, place.epoch + ahead / epoch_length);
    return SampleRange{order.sample_at(ahead % epoch_length), 1};
  }

 private:
  BlockOrder block_order(const MicroBatchRange& place) const {
    return {samples_, share_.global_batch, *blocks_, seed_, place.epoch};
  }

  std::int64_t samples_;
  LoaderShare share_;
  std::uint64_t seed_;
  std::int64_t first_step_;
  std::optional<BlockShuffle> blocks_;
  int steps_ahead_;
};

class EvaluationSampler final : public MicroBatchSampler {
 public:
  EvaluationSampler(std::int64_t samples, std::int64_t batch, int rank, int ranks, int micro_batches_ahead)
      : samples_(samples), batch_(batch), rank_(rank), ranks_(ranks), micro_batches_ahead_(micro_batches_ahead) {}

  MicroBatchRange place(std::int64_t micro_batch) const override {
    const std::int64_t batches = evaluation_batches(samples_, batch_, ranks_);
    const std::int64_t batch_of_rank = micro_batch % batches;
    const std::int64_t first = std::min((batch_of_rank * ranks_ + rank_) * batch_, samples_);
    return {micro_batch / batches, first, std::min(batch_, samples_ - first)};
  }
  std::int64_t sample_at(const MicroBatchRange&, std::int64_t position) const override { return position; }
  // Requests a whole micro-batch at once, when the current one begins.
  std::optional<SampleRange> needed_ahead(const MicroBatchRange& place, std::int64_t position) const override {
    const std::int64_t first = place.first + micro_batches_ahead_ * ranks_ * batch_;
    if (position != place.first || first >= samples_) return std::nullopt;
    return SampleRange{first, std::min(batch_, samples_ - first)};
  }

 private:
  std::int64_t samples_;
  std::int64_t batch_;
  int rank_;
  int ranks_;
  int micro_batches_ahead_;
};

}  // namespace

std::unique_ptr<MicroBatchSampler> make_training_sampler(std::int64_t samples, const LoaderShare& share,
                                                         std::uint64_t seed, std::int64_t first_step,
                                                         const std::optional<BlockShuffle>& blocks, int steps_ahead) {
  assert(share.total_micro_batches > 0 && share.global_batch % share.total_micro_batches == 0 &&
         samples >= share.global_batch);
  assert(share.micro_batches > 0 && share.first_micro_batch >= 0 &&
         share.first_micro_batch + share.micro_batches <= share.total_micro_batches);
  return std::make_unique<TrainingSampler>(samples, share, seed, first_step, blocks, steps_ahead);
}

std::unique_ptr<MicroBatchSampler> make_evaluation_sampler(std::int64_t samples, std::int64_t batch, int rank,
                                                           int ranks, int micro_batches_ahead) {
  assert(batch > 0 && rank >= 0 && rank < ranks);
  return std::make_unique<EvaluationSampler>(samples, batch, rank, ranks, micro_batches_ahead);
}

std::int64_t evaluation_batches(std::int64_t samples, std::int64_t batch, int ranks) {
  const std::int64_t per_round = batch * ranks;
  return (samples + per_round - 1) / per_round;
}

}  // namespace lockstep
