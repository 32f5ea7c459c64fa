#include "train/metrics.hpp"

#include <cmath>
#include <span>

#include "base/error.hpp"

namespace lockstep {

void Metrics::add(const Metrics& other) {
  loss_sum += other.loss_sum;
  correct += other.correct;
  samples += other.samples;
}

LossSums loss_sums(const ParameterStore& store) {
  return {store.tail(ParameterStore::tail_loss), store.tail(ParameterStore::tail_correct)};
}

Metrics read_metrics(const ParameterStore& store, std::int64_t global_batch) {
  float loss = 0;
  float correct = 0;
  store.device().read(store.tail(ParameterStore::tail_loss), std::span(&loss, 1));
  store.device().read(store.tail(ParameterStore::tail_correct), std::span(&correct, 1));
  return {static_cast<double>(loss) * static_cast<double>(global_batch), std::llround(correct), global_batch};
}

void require_finite(double loss, std::int64_t step, double learning_rate) {
  require(std::isfinite(loss), Failure::diverged,
          "loss is {} at step {} (learning rate {:.4g}). Lower --lr or lengthen the warm-up.",
          std::isnan(loss) ? "nan" : "inf", step, learning_rate);
}

}  // namespace lockstep
