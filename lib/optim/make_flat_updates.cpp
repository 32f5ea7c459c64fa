// The choice of flat updates in a build with CUDA, and those of a GPU.
#include <utility>

#include "device/cuda/check_cuda.hpp"
#include "device/cuda/cuda_device.hpp"
#include "optim/cpu_flat_updates.hpp"
#include "optim/cuda_flat_passes.hpp"

namespace lockstep {
namespace {

// As many 4-byte elements as `count` objects of a type take.
template <typename T>
Tensor room_for(Device& device, std::int64_t count) {
  static_assert(sizeof(T) % sizeof(float) == 0);
  return device.make_lasting(count * static_cast<std::int64_t>(sizeof(T) / sizeof(float)), DType::f32);
}

class CudaFlatUpdates final : public FlatUpdates {
 public:
  CudaFlatUpdates(cuda::CudaDevice& device, const std::vector<DecayRun>& runs)
      : device_(device),
        run_count_(static_cast<std::int64_t>(runs.size())),
        runs_(room_for<DecayRun>(device, run_count_)),
        rates_(room_for<DeviceRates>(device, 1)),
        scratch_(device.make_lasting(count_scratch, DType::f32)) {
    // Behind the zeros that make_lasting() may have queued.
    cuda::check_cuda(cudaMemcpyAsync(runs_.data(), runs.data(), runs.size() * sizeof(DecayRun), cudaMemcpyHostToDevice,
                                     device.stream()),
                     "copy the weight decay of each parameter to the device");
    device.synchronize();
  }

  void sgd(const SgdRates& rates, const SgdArrays& arrays) override {
    auto* const slot = reinterpret_cast<DeviceRates*>(rates_.data());
    queue_set_rates({{rates.learning_rate, rates.gradient_scale}, slot}, device_.stream());
    auto* const narrow = reinterpret_cast<std::uint16_t*>(device_.narrow_copy(arrays.values));
    queue_sgd({.runs = reinterpret_cast<const DecayRun*>(runs_.data()),
               .run_count = run_count_,
               .rates = slot,
               .momentum = rates.momentum,
               .kind = rates.kind,
               .gradients = arrays.gradients.as<float>(),
               .velocity = arrays.velocity.as<float>(),
               .values = arrays.values.as<float>(),
               .narrow = {narrow, device_.precision()}},
              arrays.gradients.shape().count(), device_.stream());
  }

  void average(const Tensor& batch, float momentum, const Tensor& running) override {
    queue_average({batch.as<float>(), momentum, running.as<float>()}, running.shape().count(), device_.stream());
  }

  void count_non_finite(const Tensor& values, const Tensor& count, Accumulate accumulate) override {
    queue_count_non_finite(values.as<float>(), values.shape().count(), scratch_.as<float>(),
                           accumulate == Accumulate::add, count.as<float>(), device_.stream());
  }

 private:
  cuda::CudaDevice& device_;
  std::int64_t run_count_;
  Tensor runs_;
  Tensor rates_;
  Tensor scratch_;
};

}  // namespace

std::unique_ptr<FlatUpdates> make_flat_updates(Device& device, std::vector<DecayRun> runs) {
  if (auto* const gpu = dynamic_cast<cuda::CudaDevice*>(&device)) return std::make_unique<CudaFlatUpdates>(*gpu, runs);
  return make_cpu_flat_updates(std::move(runs));
}

}  // namespace lockstep
