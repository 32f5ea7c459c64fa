#include "device/cpu/passes/plain_passes.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "device/cpu/norm/channel_sums.hpp"
#include "device/cpu/threads/parallel.hpp"

namespace lockstep::cpu {
namespace {

Tensor doubles(const CpuContext& context, std::int64_t count) {
  return scratch(context, count * std::int64_t{sizeof(double)});
}

double loss_scale_of(const LogitsGradient& gradient) {
  return gradient.loss_scale ? static_cast<double>(*gradient.loss_scale.as<float>()) : 1.0;
}

// Loss and gradient of one sample; `d_logits` may be null.
double sample_loss(const float* logits, std::int64_t classes, std::int64_t label, double smoothing, double scale,
                   float* d_logits) {
  const double largest = *std::max_element(logits, logits + classes);
  double exponentials = 0;
  double sum = 0;
  for (std::int64_t c = 0; c < classes; ++c) {
    exponentials += std::exp(static_cast<double>(logits[c]) - largest);
    sum += static_cast<double>(logits[c]);
  }
  const double log_sum = largest + std::log(exponentials);
  const double spread = smoothing / static_cast<double>(classes);
  if (d_logits != nullptr) {
    for (std::int64_t c = 0; c < classes; ++c) {
      const double target = spread + (c == label ? 1 - smoothing : 0);
      d_logits[c] = static_cast<float>(scale * (std::exp(static_cast<double>(logits[c]) - log_sum) - target));
    }
  }
  // - sum of target * log softmax; the targets add to 1.
  return log_sum - (1 - smoothing) * static_cast<double>(logits[label]) - spread * sum;
}

}  // namespace

void plain_bias_forward(const Tensor& x, const Tensor& bias, Activation activation, const Tensor& y) {
  const std::int64_t channels = x.shape()[1];
  for (std::int64_t i = 0; i < x.shape().count(); ++i) {
    const float value = x.as<float>()[i] + bias.as<float>()[i % channels];
    y.as<float>()[i] = activation == Activation::relu && 0 > value ? 0 : value;
  }
}

void plain_bias_backward(const CpuContext& context, const Tensor& y, const Tensor& dy, Activation activation,
                         const Tensor& dx, const Tensor& d_bias, Accumulate accumulate) {
  const std::int64_t channels = dy.shape()[1];
  const Tensor memory = doubles(context, channels);
  auto* sums = reinterpret_cast<double*>(memory.data());
  std::fill_n(sums, channels, 0.0);
  for (std::int64_t i = 0; i < dy.shape().count(); ++i) {
    const bool is_shut = activation == Activation::relu && y.as<float>()[i] <= 0;
    const float gradient = is_shut ? 0 : dy.as<float>()[i];
    dx.as<float>()[i] = gradient;
    sums[i % channels] += static_cast<double>(gradient);
  }
  for (std::int64_t channel = 0; channel < channels; ++channel) put(d_bias, channel, sums[channel], accumulate);
}

void softmax_cross_entropy(const CpuContext& context, const Tensor& logits, const Tensor& labels, float smoothing,
                           float scale, const LogitsGradient& gradient, const LossSums& sums, Accumulate accumulate) {
  const std::int64_t samples = logits.shape()[0];
  const std::int64_t classes = logits.shape()[1];
  const Tensor memory = doubles(context, samples);
  auto* losses = reinterpret_cast<double*>(memory.data());
  const double gradient_scale = static_cast<double>(scale) * loss_scale_of(gradient);
  parallel_for(context.threads, samples, [&](std::int64_t sample) {
    const std::int32_t label = labels.as<std::int32_t>()[sample];
    assert(label >= -1 && label < classes);
    float* const d_logits = gradient.d_logits ? gradient.d_logits.as<float>() + sample * classes : nullptr;
    losses[sample] = 0;
    if (label >= 0 && label < classes) {
      losses[sample] = sample_loss(logits.as<float>() + sample * classes, classes, label,
                                   static_cast<double>(smoothing), gradient_scale, d_logits);
    } else if (d_logits != nullptr) {
      std::fill_n(d_logits, classes, 0.0F);
    }
  });
  double loss = 0;
  std::int64_t correct = 0;
  for (std::int64_t sample = 0; sample < samples; ++sample) {
    const float* row = logits.as<float>() + sample * classes;
    loss += losses[sample];
    correct += std::max_element(row, row + classes) - row == labels.as<std::int32_t>()[sample] ? 1 : 0;
  }
  put(sums.loss, 0, loss * static_cast<double>(scale), accumulate);
  put(sums.correct, 0, static_cast<double>(correct), accumulate);
}

}  // namespace lockstep::cpu
