// Drawing takes most of the time, so loops are the same for all instruction sets.
#include "device/cpu/passes/dropout_pass.hpp"

#include <algorithm>

#include "device/cpu/layout/feature_map.hpp"
#include "device/cpu/threads/parallel.hpp"
#include "device/dropout.hpp"
#include "device/host_device.hpp"

namespace lockstep::cpu {
namespace {

void multiply(float& value, float factor) { value *= factor; }
void multiply(std::uint16_t& bf16, float factor) { bf16 = to_bf16(from_bf16(bf16) * factor); }

template <typename Stored>
void drop_map(const CpuContext& context, const DropoutDraws& draws, const FeatureMap& x, const FeatureMap& y) {
  constexpr std::int64_t quad_size = DropoutDraws::quad_size;
  parallel_for(context.threads, y.images * y.blocks(), [&](std::int64_t plane) {
    const std::int64_t image = plane / y.blocks();
    const std::int64_t block = plane % y.blocks();
    const std::byte* const from = x.plane(image, block);
    std::byte* const to = y.plane(image, block);
    if (from != to) std::copy_n(from, y.plane_bytes(), to);
    auto* values = reinterpret_cast<Stored*>(to);
    for (std::int64_t pixel = 0; pixel < y.pixels(); ++pixel) {
      for (std::int64_t lane = 0; lane < y.lanes; lane += quad_size) {
        const auto factors = draws.factors(image, pixel, (block * y.lanes + lane) / quad_size);
        for (const float factor : factors) multiply(*values++, factor);
      }
    }
  });
}

DropoutDraws draws_of(const Dropout& dropout, std::int64_t channels) {
  return {dropout.layer, dropout.ratio, dropout.key.as<float>(), channels};
}

}  // namespace

void drop(const CpuContext& context, const Dropout& dropout, const Tensor& x_tensor, const Tensor& y_tensor) {
  const FeatureMap x(x_tensor, context.lanes);
  const FeatureMap y(y_tensor, context.lanes);
  const DropoutDraws draws = draws_of(dropout, y.channels);
  if (y_tensor.dtype() == DType::f32) {
    drop_map<float>(context, draws, x, y);
  } else {
    drop_map<std::uint16_t>(context, draws, x, y);
  }
}

void plain_drop(const CpuContext& context, const Dropout& dropout, const Tensor& x, const Tensor& y) {
  const std::int64_t features = x.shape()[1];
  const DropoutDraws draws = draws_of(dropout, features);
  constexpr std::int64_t quad_size = DropoutDraws::quad_size;
  parallel_for(context.threads, x.shape()[0], [&](std::int64_t sample) {
    const float* const from = x.as<float>() + sample * features;
    float* const to = y.as<float>() + sample * features;
    for (std::int64_t first = 0; first < features; first += quad_size) {
      const auto factors = draws.factors(sample, 0, first / quad_size);
      const std::int64_t end = std::min(first + quad_size, features);
      for (std::int64_t i = first; i < end; ++i) to[i] = from[i] * factors[static_cast<std::size_t>(i - first)];
    }
  });
}

}  // namespace lockstep::cpu
