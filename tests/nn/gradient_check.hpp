// Small networks against central differences.
//
// A network's output y becomes one number, sum(weights * y) with fixed random weights, so that dy = weights and the
// gradient of everything the layer reads can be estimated by moving it a little to either side.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "models/test_net.hpp"
#include "network/build.hpp"
#include "nn/fused_network.hpp"

namespace lockstep::test {

// Normal values, a pure function of `seed`.
inline std::vector<float> random_values(std::int64_t count, std::uint64_t seed) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto bits = philox(seed, 0, i);
    values[i] = normal(bits[0], bits[1]);
  }
  return values;
}

// A network from x, such as [](Value x) { return relu(linear(x, "fc", 5)); }
using build::Value;
using Describe = std::function<Value(Value x)>;

inline NetworkGraph graph_of(const Describe& describe, const Shape& x) {
  NetworkGraph graph(sample_shape(x));
  describe(build::input(graph));
  return graph;
}

// A network on a device with its parameters drawn at random.
class LayerHarness {
 public:
  LayerHarness(std::shared_ptr<Device> device, const Describe& describe, const Shape& x_shape, Layout x_layout)
      : device_(std::move(device)), store_(*device_), x_shape_(x_shape), x_layout_(x_layout) {
    const NetworkGraph graph = graph_of(describe, x_shape);
    network_ = std::make_unique<FusedNetwork>(graph, LayerContext{*device_, store_, statistics_});
    store_.allocate(device_->make_persistent(store_.gradient_buffer_count(), DType::f32));
    x_values_ = random_values(x_shape.count(), 1);
    std::uint64_t seed = 2;
    for (const Parameter& parameter : store_.parameters()) {
      parameters_.push_back(random_values(parameter.count(), seed++));
      for (float& value : parameters_.back()) value *= 0.5F;
      write(parameter, parameters_.back());
    }
    dy_values_ = random_values(x_shape[0] * graph.nodes().back().shape.count(), seed);
  }

  // Adds `amount` to all elements of the parameter registered at `index`.
  void move_parameter(std::size_t index, float amount) {
    for (float& value : parameters_.at(index)) value += amount;
    write(store_.parameters().at(index), parameters_[index]);
  }

  FusedNetwork& network() { return *network_; }
  std::deque<Parameter>& parameters() { return store_.parameters(); }
  std::int64_t peak_bytes() const { return device_->peak_bytes(); }

  // Runs forward and backward once: the gradient of each parameter. `sink` records the order.
  std::vector<std::vector<float>> gradients(RecordingSink& sink) {
    const Tensor y = network_->forward(make_x(), Mode::train);
    const Tensor dy = device_->make(y.shape(), y.dtype(), y.layout());
    device_->write(dy_values_, dy);
    network_->backward(dy, sink);
    std::vector<std::vector<float>> all;
    for (const Parameter& parameter : store_.parameters()) {
      all.emplace_back(static_cast<std::size_t>(parameter.count()));
      device_->load(parameter.kind, parameter.dims, parameter.gradient, all.back());
    }
    return all;
  }

  std::vector<float> forward(Mode mode) { return read(*device_, network_->forward(make_x(), mode)); }

  // Runs forward and backward, then compares every gradient with central differences: L2 of all differences of a tensor
  // relative to its L2. Returns the worst tensor's.
  double worst_gradient_error() {
    RecordingSink sink;
    const Tensor y = network_->forward(make_x(), Mode::train);
    const Tensor dy = device_->make(y.shape(), y.dtype(), y.layout());
    device_->write(dy_values_, dy);
    const Tensor dx = network_->backward(dy, sink);

    double worst = 0.0;
    if (dx) worst = error_of(read(*device_, dx), x_values_, [] {});
    std::size_t i = 0;
    for (const Parameter& parameter : store_.parameters()) {
      std::vector<float> gradient(static_cast<std::size_t>(parameter.count()));
      device_->load(parameter.kind, parameter.dims, parameter.gradient, gradient);
      std::vector<float>& values = parameters_[i++];
      worst = std::max(worst, error_of(gradient, values, [&] { write(parameter, values); }));
    }
    return worst;
  }

 private:
  Tensor make_x() {
    Tensor x = device_->make(x_shape_, DType::f32, x_layout_);
    device_->write(x_values_, x);
    return x;
  }

  void write(const Parameter& parameter, std::span<const float> values) {
    device_->store(parameter.kind, parameter.dims, values, parameter.value);
  }

  double weighted_output() {
    const Tensor y = network_->forward(make_x(), Mode::train);
    const std::vector<float> values = read(*device_, y);
    double sum = 0.0;
    for (std::size_t i = 0; i < values.size(); ++i) sum += double{values[i]} * dy_values_[i];
    return sum;
  }

  // The slopes to both sides differ where a ReLU's ReLU mask or a pool's winner changes: there is no gradient to
  // compare with.
  double error_of(const std::vector<float>& gradient, std::vector<float>& values, const std::function<void()>& upload) {
    // Small enough for the curvature of a norm, large enough for fp32's rounding.
    constexpr float step = 2e-3F;
    constexpr double kink = 0.05;
    const double here = weighted_output();
    double difference = 0.0;
    double square = 0.0;
    std::size_t kinks = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const float value = values[i];
      const auto slope_to = [&](float moved) {
        values[i] = moved;
        upload();
        return (weighted_output() - here) / (double{moved} - double{value});
      };
      const double above = slope_to(value + step);
      const double below = slope_to(value - step);
      values[i] = value;
      if (std::abs(above - below) > kink * std::max(1.0, std::abs(above))) {
        ++kinks;
        continue;
      }
      const double expected = (above + below) / 2.0;
      difference += (gradient[i] - expected) * (gradient[i] - expected);
      square += expected * expected;
    }
    upload();
    EXPECT_LE(kinks, values.size() / 4) << "too few elements are left to compare";
    return std::sqrt(difference / square);
  }

  std::shared_ptr<Device> device_;
  StatisticsShare statistics_;
  ParameterStore store_;
  std::unique_ptr<FusedNetwork> network_;
  Shape x_shape_;
  Layout x_layout_;
  std::vector<float> x_values_;
  std::vector<std::vector<float>> parameters_;
  std::vector<float> dy_values_;
};

}  // namespace lockstep::test
