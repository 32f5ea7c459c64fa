#include "device/cpu/norm/norm_table.hpp"

#include <algorithm>
#include <cmath>

#include "device/cpu/norm/piece_sums.hpp"

namespace lockstep::cpu {

Spread spread_of(const Moments& moments) {
  const double shifted_mean = moments.sum / moments.count;
  return {moments.origin + shifted_mean, std::max(moments.square / moments.count - shifted_mean * shifted_mean, 0.0),
          moments.count};
}

void NormTable::clear() const { std::fill_n(memory_, floats_for(channels_, lanes_), 0.0F); }

void NormTable::set_from_batch(std::int64_t channel, const Spread& spread, const BatchNorm& norm) const {
  const double unbiased = spread.variance * spread.count / std::max(spread.count - 1, 1.0);
  const double deviation = std::sqrt(spread.variance + static_cast<double>(norm.weights.epsilon));
  const auto scale = static_cast<double>(norm.statistics_scale);
  float& saved_mean = norm.saved.mean.as<float>()[channel];
  float& saved_inverse = norm.saved.inverse_deviation.as<float>()[channel];
  saved_mean = static_cast<float>(spread.mean);
  saved_inverse = static_cast<float>(1 / deviation);
  put(norm.batch_mean, channel, spread.mean * scale, norm.accumulate);
  put(norm.batch_variance, channel, unbiased * scale, norm.accumulate);
  set_forward(channel, norm.weights, saved_mean, saved_inverse);
}

// Scale and shift as one multiplication and one addition. Recomputing the ReLU mask uses the same arithmetic.
void NormTable::set_forward(std::int64_t channel, const NormWeights& weights, float mean,
                            float inverse_deviation) const {
  const float factor = weights.scale.as<float>()[channel] * inverse_deviation;
  at(norm_factor, channel) = factor;
  at(norm_offset, channel) = std::fma(-mean, factor, weights.shift.as<float>()[channel]);
  at(norm_mean, channel) = mean;
}

// With u = (x - mean) / deviation: d_shift = sum dz, d_scale = sum dz * u,
// dx = scale / deviation * (dz - d_shift / count - u * d_scale / count)   (Ioffe and Szegedy 2015).
void NormTable::set_backward(std::int64_t channel, const GradientSums& sums, double count,
                             double inverse_deviation) const {
  const double d_scale = sums.dz_x * inverse_deviation;
  at(norm_x_factor, channel) = static_cast<float>(-inverse_deviation * d_scale / count);
  at(norm_mean_dz, channel) = static_cast<float>(sums.dz / count);
}

}  // namespace lockstep::cpu
