// Trains a RatingNetwork over all ranks: each rank has all data, and computes its share of each batch's micro-batches.
// With parameter servers, the last ranks have none of them, but blocks of the embedding tables, of which the other
// ranks have none (embedding/embedding_tables.hpp).
//
// A batch has a fixed number of micro-batches (virtual ranks), whose gradients are added by reproducible sums. So the
// weights have the same bits on any number of ranks and servers. The loss is the mean squared error of scores.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backend/session.hpp"
#include "dataset/loading/sampler.hpp"
#include "recommendation/rating_network.hpp"
#include "step/all_reduce.hpp"

namespace lockstep {

// The schedule of the learning rate, which is its peak.
struct RateOptions {
  Schedule schedule = Schedule::constant;    // not step
  std::optional<double> warmup_passes = {};  // unset: a fifth of the training for one_cycle, otherwise none
  std::int64_t steps = 1;                    // of the whole training; unused if the rate is constant
  bool is_constant() const { return schedule == Schedule::constant && warmup_passes.value_or(0) == 0; }
};

struct RatingTrainingOptions {
  std::int64_t width = 256;
  std::int64_t batch = 1600;
  int virtual_ranks = 16;              // micro-batches of a batch
  std::uint64_t seed = 1;              // of weights and order
  RowOptimizerOptions optimizer = {};  // of all parameters; its schedule follows from `rate`
  RateOptions rate = {};
  int servers = 0;  // 0: every rank has whole tables
};

class RatingTraining {
 public:
  // Collective. `session` and `data` outlive this. Throws AgreedError: usage as row_rule() and LrSchedule, if no rank
  // is left for training, if those that are left do not divide the virtual ranks, or if ranks have different data;
  // bad_data if require_known_ids() throws or a split is empty.
  RatingTraining(const Session& session, const RatingData& data, const RatingTrainingOptions& options);

  // Batches of a pass over the training ratings. The last one may be smaller.
  std::int64_t steps_per_pass() const;

  // Collective. Computes and applies step `step`, counted from 1, which must follow the previous one. Returns the loss
  // before the update, the same on all ranks. Throws AgreedError(diverged) if a value is not finite or too large for
  // reproducible sums.
  double step(std::int64_t step);
  // Collective. Mean squared error of scores over the test ratings, the same on any number of ranks.
  double test_error();
  // Collective. In stars, for ratings whose ids are known, the same on all ranks.
  std::vector<float> predict(std::span<const Rating> ratings);

  // Reading the following is collective. This outlives them.
  // The complete state: with the step number, it is sufficient to resume bit for bit.
  std::vector<StreamedArray> state() const;
  // Weights alone: parameters of fc layers by name, embeddings as "user.id.embedding".
  std::vector<StreamedArray> weights() const;

  // Collective. `state` and `weights` are those of rank 0; the ones of other ranks are ignored. Throw AgreedError: as
  // RowTable::assign(), bad_data for weights of another network.
  void assign(const RowTable::Arrays& state);
  void assign_weights(const RowTable::Arrays& weights);

 private:
  std::vector<Rating> micro_batch(std::int64_t step, int virtual_rank) const;
  std::vector<std::vector<Rating>> own_micro_batches(std::int64_t step) const;
  void compute(std::span<const Rating> samples, std::int64_t batch_size);
  template <class Take>
  void evaluate(std::span<const Rating> ratings, const Take& take);
  std::int64_t batch_size(std::int64_t step) const;
  void copy_dense_values();

  const Session& session_;
  const RatingData& data_;
  RatingTrainingOptions options_;
  std::unique_ptr<EmbeddingTables> tables_;
  RatingNetwork network_;
  std::unique_ptr<AllReduce> all_reduce_;
  // The parameters of fc layers, as one row that every step touches, on every rank.
  std::unique_ptr<DistributedTable> dense_;
};

}  // namespace lockstep
