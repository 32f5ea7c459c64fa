// One convolution with its operands in guarded memory and its results in double precision: what a ConvKernel is held
// to.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "device/cpu/conv/conv_kernel.hpp"
#include "support/device/cpu_fixture.hpp"
#include "support/device/guarded_tensor.hpp"
#include "support/device/naive_convolution.hpp"
#include "support/device/naive_ops.hpp"

namespace lockstep::cpu {

// A norm in front of x, with values that keep the sums exact enough to compare.
struct NormCase {
  std::vector<float> factor, offset, mean;  // by channel
  std::vector<float> rows;                  // as kernels take them
  Activation activation;
};

class ConvCase {
 public:
  using Make = std::unique_ptr<ConvKernel> (*)(const ConvProblem&, const KernelTarget&);

  ConvCase(InstructionSet set, DType precision, const naive::ConvSizes& sizes)
      : set_(set),
        precision_(precision),
        sizes_(sizes),
        lanes_(lanes_of(set)),
        x_values_(CpuFixture::values(sizes.x_count(), 1)),
        dy_values_(CpuFixture::values(sizes.y_count(), 2)),
        weight_values_(CpuFixture::values(sizes.weight_count(), 3)) {}

  void use_winograd_pairs(WinogradPairs pairs) { winograd_pairs_ = pairs; }
  KernelTarget target(int threads) const {
    KernelTarget target{set_, threads};
    target.winograd_pairs = winograd_pairs_;
    return target;
  }
  // The input as pictures, planar, instead of features.
  void read_images() { input_ = Layout::images; }
  void use_norm(Activation activation) {
    const std::int64_t channels = sizes_.conv.in_channels;
    norm_ = {CpuFixture::values(channels, 4),
             CpuFixture::values(channels, 5),
             CpuFixture::values(channels, 6),
             {},
             activation};
    norm_.rows.resize(static_cast<std::size_t>(whole_blocks(channels, lanes_) * norm_rows));
    for (std::int64_t channel = 0; channel < channels; ++channel) {
      const auto from = static_cast<std::size_t>(channel);
      const auto to = static_cast<std::size_t>(channel / lanes_ * norm_rows * lanes_ + channel % lanes_);
      const auto lanes = static_cast<std::size_t>(lanes_);
      norm_.rows[to + norm_factor * lanes] = norm_.factor[from];
      norm_.rows[to + norm_offset * lanes] = norm_.offset[from];
      norm_.rows[to + norm_mean * lanes] = norm_.mean[from];
    }
    has_norm_ = true;
  }

  // Largest error over largest value with 1 thread; expects the same bits from 2 and 3, and nothing stray.
  double error(Direction direction, Make make) {
    const Outcome once = run(direction, make, 1);
    judge(direction, once);
    const std::string bytes = once.bytes();
    EXPECT_TRUE(bytes == run(direction, make, 2).bytes() && bytes == run(direction, make, 3).bytes())
        << "bits depend on threads";
    return error_;
  }

  // Of forward's sums of y and y * y, over the largest of them; with a norm in front of x of backward_data's sums of dz
  // and dz * (x - mean). last_error() is that of dz.
  double sums_error(Direction direction, Make make) {
    wants_sums_ = true;
    error(direction, make);
    wants_sums_ = false;
    return sums_error_;
  }
  double last_error() const { return error_; }            // of an output
  double last_mean_error() const { return mean_error_; }  // its root mean square over that of the output

  // Of backward_data's sum of what dx held, `before` everywhere, and the gradient.
  double error_onto(Make make, float before) {
    accumulate_ = Accumulate::add;
    before_ = before;
    const double onto = error(Direction::backward_data, make);
    accumulate_ = Accumulate::overwrite;
    return onto;
  }

  // dweight in PyTorch's order, onto values that were all `before`.
  std::vector<float> backward_weight(Make make, Accumulate accumulate, float before) {
    accumulate_ = accumulate;
    before_ = before;
    judge(Direction::backward_weight, run(Direction::backward_weight, make, 2));
    accumulate_ = Accumulate::overwrite;
    return results_;
  }

  ConvProblem problem(Direction direction) const {
    return {direction, sizes_.conv, sizes_.n, sizes_.h, sizes_.w, input_, precision_};
  }

 private:
  struct Outcome {
    GuardedTensor result;
    std::vector<double> sums;  // NaN where nobody wants them

    std::string bytes() const {
      return result.bytes().append(reinterpret_cast<const char*>(sums.data()), sums.size() * sizeof(double));
    }
  };

  Shape x_shape() const { return {sizes_.n, sizes_.h, sizes_.w, sizes_.conv.in_channels}; }
  Shape y_shape() const { return {sizes_.n, sizes_.out_h(), sizes_.out_w(), sizes_.conv.out_channels}; }
  std::vector<std::int64_t> dims() const {
    return {sizes_.conv.out_channels, sizes_.conv.in_channels, sizes_.conv.kernel.height, sizes_.conv.kernel.width};
  }
  DType input_dtype() const { return input_ == Layout::images ? DType::f32 : precision_; }

  GuardedTensor x() const {
    GuardedTensor x(x_shape(), input_dtype(), input_, lanes_);
    pack_tensor(x_values_, x.tensor(), lanes_);
    return x;
  }
  GuardedTensor dy() const {
    GuardedTensor dy(y_shape(), precision_, Layout::features, lanes_);
    pack_tensor(dy_values_, dy.tensor(), lanes_);
    return dy;
  }
  GuardedTensor weight(const std::vector<float>& values) const {
    const std::int64_t count = storage_count(ParameterKind::conv_weight, dims(), lanes_);
    GuardedTensor weight({count}, DType::f32, Layout::plain, lanes_);
    pack_parameter(ParameterKind::conv_weight, dims(), values,
                   {weight.tensor().as<float>(), static_cast<std::size_t>(count)}, lanes_);
    return weight;
  }
  // x after the norm, as the oracle sees it.
  std::vector<float> seen_x() const {
    std::vector<float> values = x_values_;
    const auto channels = static_cast<std::size_t>(sizes_.conv.in_channels);
    for (std::size_t i = 0; has_norm_ && i < values.size(); ++i) {
      values[i] = norm_.factor[i % channels] * values[i] + norm_.offset[i % channels];
      if (norm_.activation == Activation::relu) values[i] = std::max(values[i], 0.0F);
    }
    return values;
  }

  Outcome run(Direction direction, Make make, int threads) const {
    const auto stored = static_cast<std::size_t>(whole_blocks(channels_of(direction), lanes_));
    Outcome outcome{make_result(direction), std::vector<double>(2 * stored, std::nan(""))};
    const std::unique_ptr<ConvKernel> kernel = make(problem(direction), target(threads));
    if (kernel == nullptr) {
      ADD_FAILURE() << "no kernel for " << problem(direction).text();
      return outcome;
    }
    const GuardedMemory scratch(kernel->scratch_bytes());
    std::memset(scratch.data(), 0xff, static_cast<std::size_t>(kernel->scratch_bytes()));
    const GuardedTensor first = direction == Direction::backward_data ? dy() : x();
    const GuardedTensor second = direction == Direction::backward_weight ? dy() : weight(weight_values_);
    const GuardedTensor mask_x = x();
    const InputNorm norm{norm_.rows.data(), norm_.activation};
    const OutputSums sums{outcome.sums.data(), outcome.sums.data() + stored};
    ConvCall call{{first.data(), second.data(), outcome.result.data()}};
    if (has_norm_ && (direction != Direction::backward_data || wants_sums_)) call.x_norm = &norm;
    if (direction == Direction::backward_data && wants_sums_) call.mask_x = mask_x.data();
    if (wants_sums_) call.sums = &sums;
    call.accumulate = accumulate_;
    kernel->run(call, scratch.data());
    EXPECT_TRUE(first.is_intact() && second.is_intact() && outcome.result.is_intact() && scratch.is_intact());
    EXPECT_TRUE(mask_x.is_intact());
    return outcome;
  }

  // Of the output.
  std::int64_t channels_of(Direction direction) const {
    return direction == Direction::forward ? sizes_.conv.out_channels : sizes_.conv.in_channels;
  }

  GuardedTensor make_result(Direction direction) const {
    if (direction == Direction::forward) return {y_shape(), precision_, Layout::features, lanes_};
    if (direction == Direction::backward_data) {
      GuardedTensor dx(x_shape(), precision_, Layout::features, lanes_);
      const std::vector<float> values(static_cast<std::size_t>(sizes_.x_count()), before_);
      if (accumulate_ == Accumulate::add) pack_tensor(values, dx.tensor(), lanes_);
      return dx;
    }
    return weight(std::vector<float>(static_cast<std::size_t>(sizes_.weight_count()), before_));
  }

  // What the output is compared with.
  std::vector<double> wanted(Direction direction) {
    std::vector<double> values = expected(direction);
    if (direction != Direction::backward_data) return values;
    const auto channels = static_cast<std::size_t>(sizes_.conv.in_channels);
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (accumulate_ == Accumulate::add) values[i] += static_cast<double>(before_);
      const float z = has_norm_ ? norm_.factor[i % channels] * x_values_[i] + norm_.offset[i % channels] : 1;
      if (wants_sums_) values[i] *= naive::derivative(norm_.activation, static_cast<double>(z));
    }
    return values;
  }

  // Computed once for all that makes it, however many instruction sets and precisions are held to it.
  const std::vector<double>& expected(Direction direction) const {
    static std::map<std::pair<std::string, int>, std::vector<double>> known;
    const int norm = has_norm_ ? static_cast<int>(norm_.activation) : -1;
    ConvProblem made = problem(direction);
    made.precision = DType::f32;
    std::vector<double>& values = known[{made.text(), norm}];
    if (!values.empty()) return values;
    switch (direction) {
      case Direction::forward:
        return values = naive::conv_forward(sizes_, seen_x(), weight_values_);
      case Direction::backward_data:
        return values = naive::conv_backward_data(sizes_, dy_values_, weight_values_);
      case Direction::backward_weight:
        return values = naive::conv_backward_weight(sizes_, seen_x(), dy_values_);
    }
    return values;
  }

  void judge(Direction direction, const Outcome& outcome) {
    const GuardedTensor& result = outcome.result;
    const std::vector<double> values = wanted(direction);
    results_.resize(values.size());
    if (direction == Direction::backward_weight) {
      const auto count = static_cast<std::size_t>(result.tensor().shape().count());
      unpack_parameter(ParameterKind::conv_weight, dims(), {result.tensor().as<float>(), count}, results_, lanes_);
      expect_same_bytes(weight(results_), result);
    } else {
      unpack_tensor(result.tensor(), results_, lanes_);
      const GuardedTensor clean(result.tensor().shape(), precision_, Layout::features, lanes_);
      pack_tensor(results_, clean.tensor(), lanes_);
      expect_same_bytes(clean, result);
    }
    error_ = largest_error(results_, values);
    mean_error_ = mean_error(results_, values);
    if (wants_sums_) judge_sums(direction, outcome.sums);
  }
  // What differs from the values laid out anew can only be padding, which is zero.
  static void expect_same_bytes(const GuardedTensor& clean, const GuardedTensor& result) {
    EXPECT_TRUE(clean.bytes() == result.bytes()) << "padding channels are not zero";
  }

  void judge_sums(Direction direction, const std::vector<double>& sums) {
    const std::vector<double> values = wanted(direction);
    const auto channels = static_cast<std::size_t>(channels_of(direction));
    std::vector<double> totals(sums.size(), 0.0);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::size_t channel = i % channels;
      double other = values[i];
      if (direction == Direction::backward_data) other = static_cast<double>(x_values_[i] - norm_.mean[channel]);
      totals[channel] += values[i];
      totals[sums.size() / 2 + channel] += values[i] * other;
    }
    sums_error_ = largest_error(sums, totals);
  }

  InstructionSet set_;
  DType precision_;
  naive::ConvSizes sizes_;
  int lanes_;
  std::vector<float> x_values_, dy_values_, weight_values_;
  Layout input_ = Layout::features;
  NormCase norm_{};
  WinogradPairs winograd_pairs_ = WinogradPairs::backward;
  bool has_norm_ = false;
  bool wants_sums_ = false;
  Accumulate accumulate_ = Accumulate::overwrite;
  float before_ = 0.5F;
  std::vector<float> results_;  // of the last run
  double error_ = 0;
  double mean_error_ = 0;
  double sums_error_ = 0;
};

}  // namespace lockstep::cpu
