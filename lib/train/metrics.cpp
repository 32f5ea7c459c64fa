#include "train/metrics.hpp"

#include <array>
#include <cmath>

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

StepSums read_step_sums(const ParameterStore& store, std::int64_t global_batch, float loss_scale) {
  std::array<float, ParameterStore::tail_count> tail{};
  store.device().read(store.tail(), tail);
  const double loss = static_cast<double>(tail[ParameterStore::tail_loss]) / loss_scale;
  return {{loss * static_cast<double>(global_batch), std::llround(tail[ParameterStore::tail_correct]), global_batch},
          tail[ParameterStore::tail_overflow] != 0.0F};
}

void require_finite(double loss, std::int64_t step, double learning_rate) {
  require(std::isfinite(loss), Failure::diverged,
          "loss is {} at step {} (learning rate {:.4g}). Lower --lr or lengthen the warm-up.",
          std::isnan(loss) ? "nan" : "inf", step, learning_rate);
}

void overflowed_unscaled(std::int64_t step, double learning_rate) {
  throw Error(Failure::diverged, fmt::format("gradients overflow at step {} without any loss scale (learning rate "
                                             "{:.4g}). Lower --lr or lengthen the warm-up.",
                                             step, learning_rate));
}

}  // namespace lockstep
