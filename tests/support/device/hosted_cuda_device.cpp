#include "support/device/hosted_cuda_device.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "device/cpu/reserved_memory.hpp"
#include "device/cuda/layout/cuda_layout.hpp"
#include "device/cuda/passes/flat_kernels.hpp"
#include "device/cuda/passes/kernel_flat_passes.hpp"
#include "device/cuda/passes/kernel_ops_definitions.hpp"
#include "support/device/naive_convolution.hpp"

namespace lockstep {
namespace {

using cuda::HostLaunch;

std::vector<float> contents(const Tensor& tensor) {
  std::vector<float> values(static_cast<std::size_t>(tensor.shape().count()));
  cuda::unpack_tensor(tensor, values);
  return values;
}

void put(const std::vector<double>& values, const Tensor& tensor) {
  cuda::pack_tensor(std::vector<float>(values.begin(), values.end()), tensor);
}

std::span<float> elements(const Tensor& stored) {
  return {stored.as<float>(), static_cast<std::size_t>(stored.shape().count())};
}

float rounded(DType precision, float value) {
  if (precision == DType::f16) return from_f16(to_f16(value));
  return precision == DType::bf16 ? from_bf16(to_bf16(value)) : value;
}

class HostedOps final : public cuda::KernelOps<HostLaunch> {
 public:
  explicit HostedOps(const cuda::CudaContext& context) : KernelOps(context, HostLaunch()) {}

  void conv_forward(const Conv2d& conv, const NormedMap& x, const Tensor& weight, const Tensor& y,
                    [[maybe_unused]] const Tensor& sums) override {
    assert(!x.is_deferred() && !sums);
    put(naive::conv_forward(sizes(conv, x.x), contents(x.x), weights(conv, weight)), y);
  }
  void conv_backward_data(const Conv2d& conv, const Tensor& dy, const Tensor& weight, const Tensor& dx,
                          Accumulate accumulate) override {
    std::vector<double> values = naive::conv_backward_data(sizes(conv, dx), contents(dy), weights(conv, weight));
    if (accumulate == Accumulate::add) {
      const std::vector<float> before = contents(dx);
      for (std::size_t i = 0; i < values.size(); ++i) values[i] += static_cast<double>(before[i]);
    }
    put(values, dx);
  }
  // As on a GPU: in the device's precision into scratch memory, and from there into the fp32 gradient.
  void conv_backward_weight(const Conv2d& conv, const NormedMap& x, const NormedGradient& dy, const Tensor& dweight,
                            Accumulate accumulate) override {
    assert(!x.is_deferred() && !dy.is_deferred());
    const std::vector<double> values = naive::conv_backward_weight(sizes(conv, x.x), contents(x.x), contents(dy.dy));
    const std::int64_t count = dweight.shape().count();
    std::vector<float> stored(static_cast<std::size_t>(count));
    cuda::pack_parameter(ParameterKind::conv_weight, dims(conv), std::vector<float>(values.begin(), values.end()),
                         stored);
    const Tensor memory = cuda::scratch(context(), count);
    const Tensor narrow(memory.data(), memory.bytes(), {1, 1, 1, count}, context().precision, Layout::features);
    cuda::pack_tensor(stored, narrow);
    cuda::with_dtype(context().precision, [&](auto dtype) {
      launch()(cuda::padded(count) / cuda::vector_width,
               cuda::WidenInto<dtype>{narrow.data(), dweight.as<float>(), count, accumulate});
    });
  }

  void linear_forward(const Tensor& x, const Tensor& weight, const Tensor& y) override {
    put(naive::conv_forward(linear(x, y), contents(x), contents(weight)), y);
  }
  void linear_backward_data(const Tensor& dy, const Tensor& weight, const Tensor& dx) override {
    put(naive::conv_backward_data(linear(dx, dy), contents(dy), contents(weight)), dx);
  }
  void linear_backward_weight(const Tensor& x, const Tensor& dy, const Tensor& dweight,
                              Accumulate accumulate) override {
    const std::vector<double> values = naive::conv_backward_weight(linear(x, dy), contents(x), contents(dy));
    for (std::size_t i = 0; i < values.size(); ++i) cuda::put(dweight.as<float>() + i, values[i], accumulate);
  }

  bool measures_kernels() const override { return false; }
  std::string export_plan() const override { return ""; }
  void import_plan(const std::string&) override {}
  void suggest_plan(const std::string&) override {}

 private:
  static std::vector<std::int64_t> dims(const Conv2d& conv) {
    return {conv.out_channels, conv.in_channels, conv.kernel.height, conv.kernel.width};
  }
  static naive::ConvSizes sizes(const Conv2d& conv, const Tensor& x) {
    return {conv, x.shape()[0], x.shape()[1], x.shape()[2]};
  }
  // A linear layer is a convolution of one pixel.
  static naive::ConvSizes linear(const Tensor& x, const Tensor& y) {
    return {{x.shape()[1], y.shape()[1], 1}, x.shape()[0], 1, 1};
  }
  std::vector<float> weights(const Conv2d& conv, const Tensor& stored) const {
    const naive::ConvSizes sizes{conv, 1, 1, 1};
    std::vector<float> values(static_cast<std::size_t>(sizes.weight_count()));
    cuda::unpack_parameter(ParameterKind::conv_weight, dims(conv), elements(stored), values);
    for (float& value : values) value = rounded(context().precision, value);
    return values;
  }
};

class HostedCudaDevice final : public Device, public cuda::NarrowCopies {
 public:
  explicit HostedCudaDevice(DType precision) : context_{arena_, precision}, ops_(context_) {}

  Ops& ops() override { return ops_; }
  FlatPasses& flat() override { return flat_; }
  std::string description() const override { return "the kernels of a GPU on the host"; }
  std::string plan_conditions() const override { return description(); }
  DType precision() const override { return context_.precision; }
  DType image_dtype() const override { return context_.precision; }

  Tensor make(const Shape& shape, DType dtype, Layout layout) override {
    return {arena_.allocate(cuda::storage_count(shape, layout) * size_of(dtype)), shape, dtype, layout};
  }
  Tensor make_persistent(std::int64_t count, DType dtype) override {
    Tensor tensor = make(Shape{count}, dtype, Layout::plain);
    std::memset(tensor.data(), 0, static_cast<std::size_t>(tensor.bytes()));
    lasting_.push_back(tensor);
    return tensor;
  }
  void read(const Tensor& tensor, std::span<float> values) override { cuda::unpack_tensor(tensor, values); }
  void write(std::span<const float> values, const Tensor& tensor) override { cuda::pack_tensor(values, tensor); }

  std::int64_t stored_count(ParameterKind kind, std::span<const std::int64_t> dims) const override {
    return cuda::storage_count(kind, dims);
  }
  void store(ParameterKind kind, std::span<const std::int64_t> dims, std::span<const float> values,
             const Tensor& stored) override {
    cuda::pack_parameter(kind, dims, values, elements(stored));
  }
  void load(ParameterKind kind, std::span<const std::int64_t> dims, const Tensor& stored,
            std::span<float> values) override {
    cuda::unpack_parameter(kind, dims, elements(stored), values);
  }

  // Its operations round weights as they read them.
  std::byte* narrow_copy(const Tensor&) const override { return nullptr; }

  void synchronize() override {}
  std::int64_t peak_bytes() const override { return arena_.peak_bytes(); }

 private:
  cpu::ReservedMemory memory_{std::int64_t{4} << 30};
  Arena arena_{memory_.data(), memory_.bytes()};
  cuda::CudaContext context_;
  HostedOps ops_;
  cuda::KernelFlatPasses<HostLaunch> flat_{context_, *this, HostLaunch()};
  std::vector<Tensor> lasting_;
};

}  // namespace

std::unique_ptr<Device> open_hosted_cuda_device(const DeviceOptions& options) {
  return std::make_unique<HostedCudaDevice>(options.precision);
}

}  // namespace lockstep
