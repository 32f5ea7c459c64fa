// One convolution with its operands in guarded memory and its results in double precision: what a ConvKernel is held
// to.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "device/cpu/conv_kernel.hpp"
#include "support/cpu_fixture.hpp"
#include "support/guarded_tensor.hpp"
#include "support/naive_convolution.hpp"

namespace lockstep::cpu {

// What a norm in front of x would do, with values that keep the sums exact enough to compare.
struct NormCase {
  std::vector<float> factor, offset;  // stored channels; rubbish where a channel does not exist
  Activation activation;
};

class ConvCase {
 public:
  using Make = std::unique_ptr<ConvKernel> (*)(const ConvProblem&, const KernelTarget&);

  ConvCase(InstructionSet set, DType precision, const naive::ConvSizes& sizes)
      : set_(set),
        precision_(precision),
        sizes_(sizes),
        lanes_(set == InstructionSet::avx512 ? 16 : 8),
        x_values_(CpuFixture::values(sizes.x_count(), 1)),
        dy_values_(CpuFixture::values(sizes.y_count(), 2)),
        weight_values_(CpuFixture::values(sizes.weight_count(), 3)) {}

  // The input as pictures, planar, instead of features.
  void read_images() { input_ = Layout::images; }
  void use_norm(Activation activation) {
    const auto stored = static_cast<std::size_t>(whole_blocks(sizes_.conv.in_channels, lanes_));
    norm_ = {CpuFixture::values(stored, 4), CpuFixture::values(stored, 5), activation};
    has_norm_ = true;
  }

  // Largest error over largest value with 1 thread; expects the same bits from 2 and 3, and nothing stray.
  double error(Direction direction, Make make) {
    const std::string once = run(direction, make, 1);
    EXPECT_TRUE(once == run(direction, make, 2) && once == run(direction, make, 3)) << "bits depend on threads";
    return error_;
  }

  // Of forward's sums of y and y * y, over the largest of them.
  double moments_error(Make make) {
    wants_moments_ = true;
    run(Direction::forward, make, 2);
    wants_moments_ = false;
    return moments_error_;
  }

  // dweight in PyTorch's order, onto values that were all `before`.
  std::vector<float> backward_weight(Make make, Accumulate accumulate, float before) {
    accumulate_ = accumulate;
    before_ = before;
    run(Direction::backward_weight, make, 2);
    accumulate_ = Accumulate::overwrite;
    return results_;
  }

  ConvProblem problem(Direction direction) const {
    return {direction, sizes_.conv, sizes_.n, sizes_.h, sizes_.w, input_, precision_};
  }

 private:
  Shape x_shape() const { return {sizes_.n, sizes_.h, sizes_.w, sizes_.conv.in_channels}; }
  Shape y_shape() const { return {sizes_.n, sizes_.out_h(), sizes_.out_w(), sizes_.conv.out_channels}; }
  std::vector<std::int64_t> dims() const {
    return {sizes_.conv.out_channels, sizes_.conv.in_channels, sizes_.conv.kernel, sizes_.conv.kernel};
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
  // x behind the norm, as the oracle sees it.
  std::vector<float> seen_x() const {
    std::vector<float> values = x_values_;
    const auto channels = static_cast<std::size_t>(sizes_.conv.in_channels);
    for (std::size_t i = 0; has_norm_ && i < values.size(); ++i) {
      values[i] = norm_.factor[i % channels] * values[i] + norm_.offset[i % channels];
      if (norm_.activation == Activation::relu) values[i] = std::max(values[i], 0.0F);
    }
    return values;
  }

  std::string run(Direction direction, Make make, int threads) {
    const std::unique_ptr<ConvKernel> kernel = make(problem(direction), {set_, threads});
    if (kernel == nullptr) {
      ADD_FAILURE() << "no kernel for " << problem(direction).text();
      return {};
    }
    const GuardedMemory scratch(kernel->scratch_bytes());
    std::memset(scratch.data(), 0xff, static_cast<std::size_t>(kernel->scratch_bytes()));
    const GuardedTensor first = direction == Direction::backward_data ? dy() : x();
    const GuardedTensor second = direction == Direction::backward_weight ? dy() : weight(weight_values_);
    const GuardedTensor result = make_result(direction);
    const InputNorm norm{norm_.factor.data(), norm_.offset.data(), norm_.activation};
    const auto stored = static_cast<std::size_t>(whole_blocks(sizes_.conv.out_channels, lanes_));
    std::vector<double> sums(2 * stored, std::nan(""));
    const OutputMoments moments{sums.data(), sums.data() + stored};
    ConvCall call{{first.data(), second.data(), result.data()}};
    if (has_norm_) call.x_norm = &norm;
    if (wants_moments_) call.y_moments = &moments;
    call.accumulate = accumulate_;
    kernel->run(call, scratch.data());
    EXPECT_TRUE(first.is_intact() && second.is_intact() && result.is_intact() && scratch.is_intact());
    judge(direction, result);
    if (wants_moments_) judge_moments(sums);
    return result.bytes();
  }

  GuardedTensor make_result(Direction direction) const {
    if (direction == Direction::forward) return {y_shape(), precision_, Layout::features, lanes_};
    if (direction == Direction::backward_data) return {x_shape(), precision_, Layout::features, lanes_};
    return weight(std::vector<float>(static_cast<std::size_t>(sizes_.weight_count()), before_));
  }

  // Computed once a direction.
  const std::vector<double>& expected(Direction direction) {
    std::vector<double>& values = expected_[static_cast<std::size_t>(direction)];
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

  void judge(Direction direction, const GuardedTensor& result) {
    results_.resize(expected(direction).size());
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
    error_ = largest_error(results_, expected(direction));
  }
  // What differs from the values laid out anew can only be padding, which is zero.
  static void expect_same_bytes(const GuardedTensor& clean, const GuardedTensor& result) {
    EXPECT_TRUE(clean.bytes() == result.bytes()) << "padding channels are not zero";
  }

  void judge_moments(const std::vector<double>& sums) {
    const std::vector<double>& y = expected(Direction::forward);
    const auto channels = static_cast<std::size_t>(sizes_.conv.out_channels);
    std::vector<double> moments(sums.size(), 0.0);
    for (std::size_t i = 0; i < y.size(); ++i) {
      moments[i % channels] += y[i];
      moments[sums.size() / 2 + i % channels] += y[i] * y[i];
    }
    moments_error_ = largest_error(sums, moments);
  }

  InstructionSet set_;
  DType precision_;
  naive::ConvSizes sizes_;
  int lanes_;
  std::vector<float> x_values_, dy_values_, weight_values_;
  Layout input_ = Layout::features;
  NormCase norm_{};
  bool has_norm_ = false;
  bool wants_moments_ = false;
  Accumulate accumulate_ = Accumulate::overwrite;
  float before_ = 0.5F;
  std::array<std::vector<double>, 3> expected_;  // by direction
  std::vector<float> results_;                   // of the last run
  double error_ = 0;
  double moments_error_ = 0;
};

}  // namespace lockstep::cpu
