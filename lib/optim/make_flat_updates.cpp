// The choice of flat updates in a build with CUDA, and those of a GPU.
#include <utility>

#include "device/cuda/check_cuda.hpp"
#include "device/cuda/cuda_device.hpp"
#include "optim/cpu_flat_updates.hpp"
#include "optim/cuda_flat_passes.hpp"

namespace lockstep {
namespace {

// As many fp32 elements as `count` objects of a type take.
template <typename T>
Tensor room_for(Device& device, std::size_t count) {
  static_assert(sizeof(T) % sizeof(float) == 0);
  return device.make_lasting(static_cast<std::int64_t>(count * sizeof(T) / sizeof(float)), DType::f32);
}

std::vector<cuda::DecayFrom> decay_from(const std::vector<DecayRun>& runs) {
  std::vector<cuda::DecayFrom> from;
  from.reserve(runs.size());
  for (const DecayRun& run : runs) from.push_back({run.first, run.weight_decay});
  return from;
}

class CudaFlatUpdates final : public FlatUpdates {
 public:
  CudaFlatUpdates(cuda::CudaDevice& device, const std::vector<DecayRun>& runs)
      : device_(device),
        run_count_(static_cast<std::int64_t>(runs.size())),
        runs_(room_for<cuda::DecayFrom>(device, runs.size())),
        scratch_(device.make_lasting(cuda::counting_scratch, DType::f32)) {
    const std::vector<cuda::DecayFrom> from = decay_from(runs);
    if (from.empty()) return;
    // Behind the zeros that make_lasting() may have queued.
    cuda::check_cuda(cudaMemcpyAsync(runs_.data(), from.data(), from.size() * sizeof(cuda::DecayFrom),
                                     cudaMemcpyHostToDevice, device.stream()),
                     "copy the weight decay of each parameter to the device");
    device.synchronize();
  }

  void set(const Tensor& slot, float value) override {
    cuda::queue_set_value({value, slot.as<float>()}, device_.stream());
  }

  void judge(const Tensor& tail, const TailPlaces& places, const StepRecord& record) override {
    cuda::queue_judge_step(
        {tail.as<float>(), tail.shape().count(), places.loss, places.overflow, record.all().as<float>()},
        device_.stream());
  }

  void sgd(const SgdRule& rule, const SgdArrays& arrays, const StepRecord& record) override {
    const bool looks_ahead = rule.kind == Momentum::nesterov;
    cuda::queue_sgd({.gradients = arrays.gradients.as<float>(),
                     .velocity = arrays.velocity.as<float>(),
                     .values = arrays.values.as<float>(),
                     .narrow = reinterpret_cast<std::uint16_t*>(device_.narrow_copy(arrays.values)),
                     .narrow_dtype = device_.precision(),
                     .count = arrays.gradients.shape().count(),
                     .runs = reinterpret_cast<const cuda::DecayFrom*>(runs_.data()),
                     .run_count = run_count_,
                     .momentum = rule.momentum,
                     .own = looks_ahead ? 1.0F : 0.0F,
                     .look_ahead = looks_ahead ? rule.momentum : 1.0F,
                     .learning_rate = record.at(step_learning_rate).as<float>(),
                     .gradient_scale = record.at(step_gradient_scale).as<float>(),
                     .skip = record.at(step_verdict).as<float>()},
                    device_.stream());
  }

  void average(const Tensor& batch, float momentum, const Tensor& running, const StepRecord& record) override {
    cuda::queue_average({batch.as<float>(), momentum, running.as<float>(), record.at(step_verdict).as<float>()},
                        running.shape().count(), device_.stream());
  }

  void count_outside(const Tensor& values, float limit, const Tensor& count, Accumulate accumulate) override {
    cuda::queue_count_outside(values, limit, scratch_, count, accumulate, device_.stream());
  }

  void sum_fixed(const Tensor& values, const FixedPoint& form, const Tensor& sums, Accumulate accumulate) override {
    cuda::queue_sum_fixed({values.as<float>(), form, sums.as<std::int64_t>(), accumulate}, values.shape().count(),
                          device_.stream());
  }

  void values_of_fixed(const Tensor& sums, const Tensor& values) override {
    cuda::queue_values_of_fixed({sums.as<std::int64_t>(), values.as<float>()}, values.shape().count(),
                                device_.stream());
  }

 private:
  cuda::CudaDevice& device_;
  std::int64_t run_count_;
  Tensor runs_;
  Tensor scratch_;
};

}  // namespace

std::unique_ptr<FlatUpdates> make_flat_updates(Device& device, std::vector<DecayRun> runs) {
  if (auto* const gpu = dynamic_cast<cuda::CudaDevice*>(&device)) return std::make_unique<CudaFlatUpdates>(*gpu, runs);
  return make_cpu_flat_updates(std::move(runs));
}

}  // namespace lockstep
