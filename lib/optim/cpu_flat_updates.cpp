#include "optim/cpu_flat_updates.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "optim/flat_sums.hpp"

namespace lockstep {
namespace {

std::span<float> elements(const Tensor& tensor) {
  return {tensor.as<float>(), static_cast<std::size_t>(tensor.shape().count())};
}

std::span<std::int64_t> fixed_elements(const Tensor& tensor) {
  return {tensor.as<std::int64_t>(), static_cast<std::size_t>(tensor.shape().count())};
}

class CpuFlatUpdates final : public FlatUpdates {
 public:
  explicit CpuFlatUpdates(std::vector<DecayRun> runs) : runs_(std::move(runs)) {}

  void set(const Tensor& slot, float value) override { *slot.as<float>() = value; }

  void judge(const Tensor& tail, const TailPlaces& places, const StepRecord& record) override {
    const std::span<const float> from = elements(tail);
    float* const values = record.all().as<float>();
    const Verdict verdict = judge_step(values, from[static_cast<std::size_t>(places.loss)],
                                       from[static_cast<std::size_t>(places.overflow)]);
    values[step_verdict] = static_cast<float>(verdict);
    std::ranges::copy(from, values + step_tail);
  }

  void sgd(const SgdRule& rule, const SgdArrays& arrays, const StepRecord& record) override {
    if (!is_applied(record)) return;
    const std::span<float> gradients = elements(arrays.gradients);
    const SgdRates rates{value_of(record, step_learning_rate), value_of(record, step_gradient_scale)};
    sgd_update(runs_, rule, rates, gradients, elements(arrays.velocity),
               elements(arrays.values).first(gradients.size()));
  }

  void average(const Tensor& batch, float momentum, const Tensor& running, const StepRecord& record) override {
    if (is_applied(record)) average_into(elements(batch), momentum, elements(running));
  }

  void count_outside(const Tensor& values, float limit, const Tensor& count, Accumulate accumulate) override {
    const auto found = static_cast<float>(lockstep::count_outside(elements(values), limit));
    float& sum = *count.as<float>();
    sum = accumulate == Accumulate::add ? sum + found : found;
  }

  void sum_fixed(const Tensor& values, const FixedPoint& form, const Tensor& sums, Accumulate accumulate) override {
    lockstep::sum_fixed(elements(values), form, fixed_elements(sums), accumulate);
  }

  void values_of_fixed(const Tensor& sums, const Tensor& values) override {
    lockstep::values_of_fixed(fixed_elements(sums), elements(values));
  }

 private:
  static float value_of(const StepRecord& record, StepField field) { return *record.at(field).as<float>(); }
  static bool is_applied(const StepRecord& record) {
    return value_of(record, step_verdict) == static_cast<float>(Verdict::applied);
  }

  std::vector<DecayRun> runs_;
};

}  // namespace

std::unique_ptr<FlatUpdates> make_cpu_flat_updates(std::vector<DecayRun> runs) {
  return std::make_unique<CpuFlatUpdates>(std::move(runs));
}

}  // namespace lockstep
