// Passes over flat arrays in host memory, on all threads of the rank. No result depends on the number of threads.
#pragma once

#include "device/cpu/cpu_context.hpp"
#include "device/cpu/passes/cpu_low_rank.hpp"
#include "device/cpu/passes/cpu_matrix_passes.hpp"
#include "device/cpu/passes/vector_loops.hpp"
#include "device/flat/flat_passes.hpp"

namespace lockstep::cpu {

class CpuFlatPasses final : public FlatPasses {
 public:
  // `context` outlives this and the updates.
  CpuFlatPasses(const CpuContext& context, const VectorLoops& loops)
      : context_(context), loops_(loops), low_rank_(context), matrices_(context) {}

  std::unique_ptr<FlatUpdate> make_update(const UpdateRule& rule, std::span<const UpdateRun> runs,
                                          const UpdateArrays& arrays) override;
  std::unique_ptr<FlatUpdate> make_clip(const GradientClip& clip, const UpdateArrays& arrays) override;
  void set(const Tensor& values, float value) override;
  void judge(const Tensor& metric_slots, const MetricSlots& places, const StepRecord& record) override;
  void average(const Tensor& batch, float momentum, const Tensor& running, const StepRecord& record) override;
  void follow(const Tensor& values, const EmaRule& rule, const Tensor& mean, const StepRecord& record) override;
  void exchange(const Tensor& values, const Tensor& other) override;
  void copy(const Tensor& other, const Tensor& values) override;
  void subtract(const Tensor& a, const Tensor& b, float factor, const Tensor& difference) override;
  void renew_copies(const Tensor& /*values*/) override {}  // keeps none
  std::int64_t overflow_counters() const override { return 1; }
  void count_overflows(const Tensor& values, float limit, const Tensor& counters, Accumulate accumulate) override;
  void sum_overflows(const Tensor& counters, const Tensor& count) override {
    *count.as<float>() = *counters.as<float>();
  }
  MatrixPasses& matrices() override { return matrices_; }
  LowRankPasses* low_rank() override { return &low_rank_; }
  void sum_fixed(const Tensor& values, const FixedPoint& form, const Tensor& sums, Accumulate accumulate) override;
  void values_of_fixed(const Tensor& sums, const Tensor& values) override;

 private:
  const CpuContext& context_;
  const VectorLoops& loops_;
  CpuLowRankPasses low_rank_;
  CpuMatrixPasses matrices_;
};

}  // namespace lockstep::cpu
