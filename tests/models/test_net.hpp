// A model with everything that one training step needs, driven by hand.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "device/cpu/cpu_device.hpp"
#include "models/model_zoo.hpp"
#include "nn/loss.hpp"

namespace lockstep::test {

// Writes down what backward reports.
class RecordingSink final : public GradientSink {
 public:
  explicit RecordingSink(Accumulate accumulate = Accumulate::overwrite) : accumulate_(accumulate) {}
  Accumulate accumulate() const override { return accumulate_; }
  void ready(const Parameter& parameter) override { reported.push_back(parameter.index); }

  std::vector<int> reported;

 private:
  Accumulate accumulate_;
};

inline std::unique_ptr<Device> open_test_device(DType precision = DType::f32) {
  return cpu::open_cpu_device({.threads = 1, .precision = precision});
}

inline std::vector<float> read(Device& device, const Tensor& tensor) {
  std::vector<float> values(static_cast<std::size_t>(tensor.shape().count()));
  device.read(tensor, values);
  return values;
}

inline Tensor make_images(Device& device, const Shape& shape, std::span<const float> values) {
  Tensor images = device.make(shape, device.image_dtype(), Layout::images);
  device.write(values, images);
  return images;
}

inline Tensor make_labels(Device& device, std::span<const float> labels) {
  Tensor tensor = device.make({static_cast<std::int64_t>(labels.size())}, DType::i32, Layout::plain);
  device.write(labels, tensor);
  return tensor;
}

struct TestNet {
  explicit TestNet(const ModelOptions& options, DType precision = DType::f32)
      : TestNet(options, open_test_device(precision)) {}
  TestNet(const ModelOptions& options, std::shared_ptr<Device> on) : device(std::move(on)), store(*device) {
    model = make_model(options, {*device, store, statistics});
    store.allocate(device->make_persistent(store.gradient_buffer_count(), DType::f32));
  }

  // Forward, loss and backward of one part. Returns the logits.
  Tensor pass(const Tensor& images, const Tensor& labels, GradientSink& sink) {
    statistics.accumulate = sink.accumulate();
    Tensor logits = model->forward(images, Mode::train);
    const LossSums sums{store.metric_slots(ParameterStore::loss_slot),
                        store.metric_slots(ParameterStore::correct_slot)};
    const LossOptions options{.scale = statistics.scale / static_cast<float>(labels.shape()[0])};
    model->backward(softmax_cross_entropy(*device, logits, labels, options, sums, sink.accumulate()), sink);
    return logits;
  }

  double loss() const { return read(*device, store.metric_slots(ParameterStore::loss_slot)).at(0); }

  std::vector<float> gradient(const Parameter& parameter) const {
    std::vector<float> values(static_cast<std::size_t>(parameter.count()));
    device->load(parameter.kind, parameter.dims, parameter.gradient, values);
    return values;
  }

  std::shared_ptr<Device> device;
  StatisticsShare statistics;
  ParameterStore store;
  std::unique_ptr<Network> model;
};

}  // namespace lockstep::test
