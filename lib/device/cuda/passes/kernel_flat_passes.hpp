// How the passes over flat arrays are cut into loops. For the files that choose how loops run.
#pragma once

#include <cassert>
#include <memory>
#include <vector>

#include "device/cuda/cuda_context.hpp"
#include "device/cuda/launch/launch.hpp"
#include "device/cuda/passes/flat_kernels.hpp"
#include "device/flat/flat_passes.hpp"

namespace lockstep::cuda {

// `Launch` runs the loops: see launch.hpp.
template <typename Launch, typename Rule>
class KernelFlatUpdate final : public FlatUpdate {
 public:
  KernelFlatUpdate(const CudaContext& context, const NarrowCopies& copies, const Launch& launch, const Rule& rule,
                   std::span<const DecayRun> runs, const UpdateArrays& arrays)
      : context_(context),
        copies_(copies),
        launch_(launch),
        rule_(rule),
        arrays_(arrays),
        runs_(table(context.arena, std::ssize(runs))) {
    assert(arrays.states.size() == Rule::states && !runs.empty());
    auto* slot = reinterpret_cast<DecayFrom*>(runs_.data());
    for (const DecayRun& run : runs) launch(1, Put<DecayFrom>{{run.first, run.weight_decay}, slot++});
  }

  void run(const StepRecord& record) override {
    Update<Rule> update{.rule = rule_,
                        .gradients = arrays_.gradients.template as<float>(),
                        .values = arrays_.values.template as<float>(),
                        .states = {},
                        .narrow = reinterpret_cast<std::uint16_t*>(copies_.narrow_copy(arrays_.values)),
                        .narrow_dtype = context_.precision,
                        .count = arrays_.gradients.shape().count(),
                        .runs = reinterpret_cast<const DecayFrom*>(runs_.data()),
                        .run_count = runs_.shape().count(),
                        .learning_rate = record.at(step_learning_rate).template as<float>(),
                        .gradient_scale = record.at(step_gradient_scale).template as<float>(),
                        .skip = record.at(step_verdict).template as<float>()};
    for (std::size_t k = 0; k < arrays_.states.size(); ++k) update.states[k] = arrays_.states[k].template as<float>();
    launch_(quads(update.count), update);
  }

 private:
  // As many elements as there are runs, each of several bytes.
  static Tensor table(Arena& arena, std::int64_t runs) {
    const auto bytes = static_cast<std::int64_t>(sizeof(DecayFrom)) * runs;
    return {arena.allocate(bytes), Shape{runs}, DType::u8, Layout::plain};
  }

  const CudaContext& context_;
  const NarrowCopies& copies_;
  Launch launch_;
  Rule rule_;
  UpdateArrays arrays_;
  Tensor runs_;
};

template <typename Launch>
class KernelFlatPasses final : public FlatPasses {
 public:
  // `context` and `copies` outlive this, and the updates.
  KernelFlatPasses(const CudaContext& context, const NarrowCopies& copies, const Launch& launch)
      : context_(context), copies_(copies), launch_(launch) {}

  std::unique_ptr<FlatUpdate> make_update(const UpdateRule& rule, std::span<const DecayRun> runs,
                                          const UpdateArrays& arrays) override {
    return std::visit(
        [&]<typename Rule>(const Rule& one) -> std::unique_ptr<FlatUpdate> {
          return std::make_unique<KernelFlatUpdate<Launch, Rule>>(context_, copies_, launch_, one, runs, arrays);
        },
        rule);
  }

  void set(const Tensor& slot, float value) override { launch_(1, Put<float>{value, slot.as<float>()}); }

  void judge(const Tensor& tail, const TailPlaces& places, const StepRecord& record) override {
    launch_(1, JudgeStep{tail.as<float>(), tail.shape().count(), places.loss, places.overflow,
                         record.all().template as<float>()});
  }

  void average(const Tensor& batch, float momentum, const Tensor& running, const StepRecord& record) override {
    launch_(running.shape().count(), AverageInto{batch.as<float>(), momentum, running.as<float>(),
                                                 record.at(step_verdict).template as<float>()});
  }

  // So many threads count; each further launch makes their sums fewer.
  void count_outside(const Tensor& values, float limit, const Tensor& count, Accumulate accumulate) override {
    constexpr std::int64_t threads = 4096;
    constexpr std::int64_t fewer = threads / lessening;
    const Tensor sums = scratch(context_, threads + fewer);
    auto* const first = sums.template as<float>();
    float* const second = first + threads;
    launch_(threads, CountOutside{values.as<float>(), values.shape().count(), limit, threads, first});
    launch_(fewer, Lessen{{first, 1, threads}, second, fewer});
    launch_(1, FinishSums{{second, 1, fewer}, 0, 1, count.as<float>(), accumulate});
  }

  void sum_fixed(const Tensor& values, const FixedPoint& form, const Tensor& sums, Accumulate accumulate) override {
    launch_(values.shape().count(), SumFixed{values.as<float>(), form, sums.as<std::int64_t>(), accumulate});
  }

  void values_of_fixed(const Tensor& sums, const Tensor& values) override {
    launch_(values.shape().count(), ValuesOfFixed{sums.as<std::int64_t>(), values.as<float>()});
  }

 private:
  const CudaContext& context_;
  const NarrowCopies& copies_;
  Launch launch_;
};

}  // namespace lockstep::cuda
