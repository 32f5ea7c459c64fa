#include "device/cpu/passes/cpu_flat_passes.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cassert>

#include "device/cpu/passes/cpu_flat_update.hpp"

namespace lockstep::cpu {

std::unique_ptr<FlatUpdate> CpuFlatPasses::make_update(const UpdateRule& rule, std::span<const UpdateRun> runs,
                                                       const UpdateArrays& arrays) {
  return std::visit(
      [&]<typename Rule>(const Rule& one) -> std::unique_ptr<FlatUpdate> {
        return std::make_unique<CpuFlatUpdate<Rule>>(context_, loops_, one, runs, arrays);
      },
      rule);
}

namespace {

class CpuClip final : public FlatUpdate {
 public:
  CpuClip(const CpuContext& context, const VectorLoops& loops, const GradientClip& clip, const UpdateArrays& arrays)
      : context_(context),
        clip_(clip),
        gradients_(arrays.gradients),
        parts_(parts_of(arrays)),
        sum_(context, loops, {{0, gradients_.shape().count(), 0}}) {}

  void run(const StepRecord& record) override {
    if (clip_.value) clip_values(*clip_.value / *record.at(step_gradient_scale).as<float>());
    if (!clip_.norm) return;
    sum_.sum(gradients_.as<float>(), squares_);
    clip_step(record.all().as<float>(), squares_[0], *clip_.norm);
  }

 private:
  void clip_values(float bound) const {
    for (const FlatPart& part : parts_) {
      float* const values = gradients_.as<float>() + part.first;
      parallel_parts(context_.threads, part.count, [=](std::int64_t first, std::int64_t last) {
        for (std::int64_t i = first; i < last; ++i) values[i] = clip_value(values[i], bound);
      });
    }
  }

  const CpuContext& context_;
  GradientClip clip_;
  Tensor gradients_;
  std::vector<FlatPart> parts_;
  SquareSums sum_;
  std::vector<double> squares_ = {0};
};

}  // namespace

std::unique_ptr<FlatUpdate> CpuFlatPasses::make_clip(const GradientClip& clip, const UpdateArrays& arrays) {
  return std::make_unique<CpuClip>(context_, loops_, clip, arrays);
}

void CpuFlatPasses::set(const Tensor& values, float value) {
  std::fill_n(values.as<float>(), values.shape().count(), value);
}

void CpuFlatPasses::judge(const Tensor& metric_slots, const MetricSlots& places, const StepRecord& record) {
  const float* const from = metric_slots.as<float>();
  float* const values = record.all().as<float>();
  values[step_verdict] = static_cast<float>(judge_step(values, from[places.loss], from[places.overflow]));
  std::copy_n(from, metric_slots.shape().count(), values + step_metric_slots);
}

void CpuFlatPasses::average(const Tensor& batch, float momentum, const Tensor& running, const StepRecord& record) {
  assert(batch.shape().count() == running.shape().count());
  if (!is_applied(record)) return;
  const float* const from = batch.as<float>();
  float* const into = running.as<float>();
  for (std::int64_t i = 0; i < running.shape().count(); ++i) into[i] = averaged(into[i], momentum, from[i]);
}

void CpuFlatPasses::follow(const Tensor& values, const EmaRule& rule, const Tensor& mean, const StepRecord& record) {
  assert(values.shape().count() == mean.shape().count());
  const float share = ema_share(rule, record.all().as<float>());
  if (share == 0) return;
  float* const from = values.as<float>();
  float* const into = mean.as<float>();
  const bool leads = rule.leads;
  parallel_parts(context_.threads, mean.shape().count(), [=](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) into[i] = averaged(into[i], share, from[i]);
    if (leads) std::copy(into + first, into + last, from + first);
  });
}

void CpuFlatPasses::exchange(const Tensor& values, const Tensor& other) {
  assert(values.shape().count() == other.shape().count());
  std::swap_ranges(values.as<float>(), values.as<float>() + values.shape().count(), other.as<float>());
}

void CpuFlatPasses::copy(const Tensor& other, const Tensor& values) {
  assert(values.shape().count() == other.shape().count());
  const float* const from = other.as<float>();
  float* const into = values.as<float>();
  parallel_parts(context_.threads, values.shape().count(),
                 [=](std::int64_t first, std::int64_t last) { std::copy(from + first, from + last, into + first); });
}

void CpuFlatPasses::subtract(const Tensor& a, const Tensor& b, float factor, const Tensor& difference) {
  assert(a.shape().count() == difference.shape().count() && b.shape().count() == difference.shape().count());
  const float* const from = a.as<float>();
  const float* const less = b.as<float>();
  float* const into = difference.as<float>();
  parallel_parts(context_.threads, difference.shape().count(), [=](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) into[i] = (from[i] - less[i]) * factor;
  });
}

void CpuFlatPasses::count_overflows(const Tensor& values, float limit, const Tensor& counters, Accumulate accumulate) {
  constexpr std::uint32_t all_but_sign = 0x7fffffff;  // as integers, magnitudes and NaNs keep their order
  const auto bound = std::bit_cast<std::uint32_t>(limit);
  const float* const v = values.as<float>();
  std::atomic<std::int64_t> found = 0;
  parallel_parts(context_.threads, values.shape().count(), [v, bound, &found](std::int64_t first, std::int64_t last) {
    std::int64_t found_here = 0;
    for (std::int64_t i = first; i < last; ++i) {
      found_here += (std::bit_cast<std::uint32_t>(v[i]) & all_but_sign) >= bound ? 1 : 0;
    }
    found += found_here;
  });
  float& sum = *counters.as<float>();
  const auto more = static_cast<float>(found);
  sum = accumulate == Accumulate::add ? sum + more : more;
}

void CpuFlatPasses::sum_fixed(const Tensor& values, const FixedPoint& form, const Tensor& sums, Accumulate accumulate) {
  assert(sums.shape().count() == values.shape().count());
  const std::int64_t keep = accumulate == Accumulate::add ? -1 : 0;  // a mask, so one loop serves both
  const float* const v = values.as<float>();
  auto* const s = sums.as<std::int64_t>();
  parallel_parts(context_.threads, values.shape().count(), [=](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) s[i] = (s[i] & keep) + form.fixed(v[i]);
  });
}

void CpuFlatPasses::values_of_fixed(const Tensor& sums, const Tensor& values) {
  assert(sums.shape().count() == values.shape().count());
  const auto* const s = sums.as<std::int64_t>();
  float* const v = values.as<float>();
  parallel_parts(context_.threads, values.shape().count(), [=](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) v[i] = FixedPoint::value(s[i]);
  });
}

}  // namespace lockstep::cpu
