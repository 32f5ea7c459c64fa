#include "optim/cpu_flat_updates.hpp"

#include <span>
#include <utility>

namespace lockstep {
namespace {

std::span<float> elements(const Tensor& tensor) {
  return {tensor.as<float>(), static_cast<std::size_t>(tensor.shape().count())};
}

class CpuFlatUpdates final : public FlatUpdates {
 public:
  explicit CpuFlatUpdates(std::vector<DecayRun> runs) : runs_(std::move(runs)) {}

  void sgd(const SgdRates& rates, const SgdArrays& arrays) override {
    const std::span<float> gradients = elements(arrays.gradients);
    sgd_update(runs_, rates, gradients, elements(arrays.velocity), elements(arrays.values).first(gradients.size()));
  }

  void average(const Tensor& batch, float momentum, const Tensor& running) override {
    average_into(elements(batch), momentum, elements(running));
  }

  void count_non_finite(const Tensor& values, const Tensor& count, Accumulate accumulate) override {
    const auto found = static_cast<float>(lockstep::count_non_finite(elements(values)));
    float& sum = *count.as<float>();
    sum = accumulate == Accumulate::add ? sum + found : found;
  }

 private:
  std::vector<DecayRun> runs_;
};

}  // namespace

std::unique_ptr<FlatUpdates> make_cpu_flat_updates(std::vector<DecayRun> runs) {
  return std::make_unique<CpuFlatUpdates>(std::move(runs));
}

}  // namespace lockstep
