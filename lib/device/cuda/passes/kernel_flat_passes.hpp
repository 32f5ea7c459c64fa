// FlatPasses for GPUs: splits each pass into launches of the loop bodies in flat_kernels.hpp. `Launch` runs them on a
// GPU or, for tests, on the host (launch/launch.hpp). Include only where a Launch is chosen.
#pragma once

#include <cassert>
#include <memory>
#include <utility>
#include <vector>

#include "device/cuda/cuda_context.hpp"
#include "device/cuda/launch/launch.hpp"
#include "device/cuda/passes/device_table.hpp"
#include "device/cuda/passes/flat_kernels.hpp"
#include "device/cuda/passes/kernel_matrix_passes.hpp"
#include "device/flat/flat_passes.hpp"

namespace lockstep::cuda {

// Runs in GPU memory, and sums of squares over them.
template <typename Launch>
class PlacedRuns {
 public:
  PlacedRuns(const CudaContext& context, const Launch& launch, std::span<const UpdateRun> runs)
      : context_(context), launch_(launch), table_(table<PlacedRun>(context.arena, std::ssize(runs))) {
    auto* slot = entries_of<PlacedRun>(table_);
    for (const UpdateRun& run : runs) {
      launch(1, StoreValue<PlacedRun>{{run, pieces_}, slot++});
      pieces_ += pieces_of(run.count);
    }
  }

  const PlacedRun* data() const { return entries_of<const PlacedRun>(table_); }
  std::int64_t count() const { return table_.shape().count(); }
  std::int64_t pieces() const { return pieces_; }

  // Sums of squares [pieces()] of an array that the runs divide.
  Tensor sums_of_pieces(const Tensor& array) const {
    const Tensor sums = table<double>(context_.arena, pieces_);
    const Tensor lanes = table<double>(context_.arena, pieces_ * sum_lanes);
    auto* const of_lanes = entries_of<double>(lanes);
    launch_(pieces_ * sum_lanes, SumSquares{array.as<float>(), data(), count(), of_lanes});
    launch_(pieces_, AddGroups{of_lanes, pieces_ * sum_lanes, sum_lanes, entries_of<double>(sums)});
    return sums;
  }

 private:
  const CudaContext& context_;
  Launch launch_;
  Tensor table_;
  std::int64_t pieces_ = 0;
};

// `Launch` runs the loops, see launch.hpp.
template <typename Launch, typename Rule>
class KernelFlatUpdate final : public FlatUpdate {
 public:
  KernelFlatUpdate(const CudaContext& context, const NarrowCopies& copies, const Launch& launch, const Rule& rule,
                   std::span<const UpdateRun> runs, UpdateArrays arrays)
      : context_(context),
        copies_(copies),
        launch_(launch),
        rule_(rule),
        arrays_(std::move(arrays)),
        runs_(context, launch, runs),
        rates_(table<Rates>(context.arena, std::ssize(runs))) {
    assert(arrays_.states.size() == Rule::states && !runs.empty());
  }

  void run(const StepRecord& record) override {
    const StepPlaces step = places_in(record);
    if constexpr (Rule::rates_are != RatesAre::copied) find_rates(step);
    auto* const narrow = reinterpret_cast<std::uint16_t*>(copies_.narrow_copy(arrays_.values));
    std::int64_t state = 0;
    for (const FlatPart& part : parts_of(arrays_)) {
      Update<Rule> update{.rule = rule_,
                          .first = part.first,
                          .gradients = arrays_.gradients.template as<float>() + part.first,
                          .values = arrays_.values.template as<float>() + part.first,
                          .states = {},
                          .narrow = narrow == nullptr ? nullptr : narrow + part.first,
                          .narrow_dtype = context_.precision,
                          .count = part.count,
                          .runs = runs_.data(),
                          .run_count = runs_.count(),
                          .rates = entries_of<const Rates>(rates_),
                          .step = step};
      for (std::size_t k = 0; k < arrays_.states.size(); ++k) {
        update.states[k] = arrays_.states[k].template as<float>() + state;
      }
      launch_(quads(update.count), update);
      state += part.count;
    }
  }

 private:
  using Rates = typename Rule::Rates;

  void find_rates(const StepPlaces& step) {
    Tensor values;
    Tensor gradients;
    if constexpr (Rule::rates_are == RatesAre::adapted) {
      values = runs_.sums_of_pieces(arrays_.values);
      gradients = runs_.sums_of_pieces(arrays_.gradients);
    }
    launch_(runs_.count(),
            FindRates<Rule>{rule_, step, runs_.data(), runs_.count(), runs_.pieces(),
                            values ? entries_of<const double>(values) : nullptr,
                            gradients ? entries_of<const double>(gradients) : nullptr, entries_of<Rates>(rates_)});
  }

  const CudaContext& context_;
  const NarrowCopies& copies_;
  Launch launch_;
  Rule rule_;
  UpdateArrays arrays_;
  PlacedRuns<Launch> runs_;
  Tensor rates_;
};

template <typename Launch>
class KernelClip final : public FlatUpdate {
 public:
  KernelClip(const CudaContext& context, const Launch& launch, const GradientClip& clip, const UpdateArrays& arrays)
      : context_(context),
        launch_(launch),
        clip_(clip),
        gradients_(arrays.gradients),
        parts_(parts_of(arrays)),
        all_(context, launch, std::vector<UpdateRun>{{0, gradients_.shape().count(), 0}}) {}

  void run(const StepRecord& record) override {
    if (clip_.value) {
      for (const FlatPart& part : parts_) {
        launch_(quads(part.count), ClipValues{gradients_.as<float>() + part.first, part.count, *clip_.value,
                                              record.at(step_gradient_scale).template as<float>()});
      }
    }
    if (clip_.norm) clip_norm(record);
  }

 private:
  void clip_norm(const StepRecord& record) {
    constexpr std::int64_t most = 64;  // values that one thread adds
    Tensor sums = all_.sums_of_pieces(gradients_);
    while (sums.shape().count() > most) {
      const std::int64_t count = sums.shape().count();
      const Tensor fewer = table<double>(context_.arena, (count + most - 1) / most);
      launch_(fewer.shape().count(), AddGroups{entries_of<double>(sums), count, most, entries_of<double>(fewer)});
      sums = fewer;
    }
    launch_(1,
            ClipStep{entries_of<double>(sums), sums.shape().count(), *clip_.norm, record.all().template as<float>()});
  }

  const CudaContext& context_;
  Launch launch_;
  GradientClip clip_;
  Tensor gradients_;
  std::vector<FlatPart> parts_;
  PlacedRuns<Launch> all_;
};

template <typename Launch>
class KernelFlatPasses final : public FlatPasses {
 public:
  // `context` and `copies` outlive this and the updates.
  KernelFlatPasses(const CudaContext& context, const NarrowCopies& copies, const Launch& launch)
      : context_(context), copies_(copies), launch_(launch), matrices_(context, launch) {}

  std::unique_ptr<FlatUpdate> make_update(const UpdateRule& rule, std::span<const UpdateRun> runs,
                                          const UpdateArrays& arrays) override {
    return std::visit(
        [&]<typename Rule>(const Rule& one) -> std::unique_ptr<FlatUpdate> {
          return std::make_unique<KernelFlatUpdate<Launch, Rule>>(context_, copies_, launch_, one, runs, arrays);
        },
        rule);
  }

  std::unique_ptr<FlatUpdate> make_clip(const GradientClip& clip, const UpdateArrays& arrays) override {
    return std::make_unique<KernelClip<Launch>>(context_, launch_, clip, arrays);
  }

  void follow(const Tensor& values, const EmaRule& rule, const Tensor& mean, const StepRecord& record) override {
    const std::int64_t count = mean.shape().count();
    launch_(quads(count), UpdateEma{values.as<float>(), reinterpret_cast<std::uint16_t*>(copies_.narrow_copy(values)),
                                    context_.precision, rule, mean.as<float>(), count, record.all().as<float>()});
  }

  void exchange(const Tensor& values, const Tensor& other) override {
    const std::int64_t count = values.shape().count();
    launch_(quads(count),
            ExchangeValues{values.as<float>(), other.as<float>(),
                           reinterpret_cast<std::uint16_t*>(copies_.narrow_copy(values)), context_.precision, count});
  }

  void copy(const Tensor& other, const Tensor& values) override {
    const std::int64_t count = values.shape().count();
    launch_(quads(count),
            CopyValues{other.as<float>(), values.as<float>(),
                       reinterpret_cast<std::uint16_t*>(copies_.narrow_copy(values)), context_.precision, count});
  }

  void subtract(const Tensor& a, const Tensor& b, float factor, const Tensor& difference) override {
    const std::int64_t count = difference.shape().count();
    launch_(quads(count), Subtract{a.as<float>(), b.as<float>(), factor, difference.as<float>(), count});
  }

  void renew_copies(const Tensor& values) override {
    auto* const narrow = reinterpret_cast<std::uint16_t*>(copies_.narrow_copy(values));
    const std::int64_t count = values.shape().count();
    if (narrow != nullptr) launch_(quads(count), Narrow{values.as<float>(), context_.precision, narrow, count});
  }

  void set(const Tensor& values, float value) override {
    launch_(values.shape().count(), StoreValue<float>{value, values.as<float>()});
  }

  void judge(const Tensor& metric_slots, const MetricSlots& places, const StepRecord& record) override {
    launch_(1, JudgeStep{metric_slots.as<float>(), metric_slots.shape().count(), places.loss, places.overflow,
                         record.all().template as<float>()});
  }

  void average(const Tensor& batch, float momentum, const Tensor& running, const StepRecord& record) override {
    launch_(running.shape().count(), AverageInto{batch.as<float>(), momentum, running.as<float>(),
                                                 record.at(step_verdict).template as<float>()});
  }

  MatrixPasses& matrices() override { return matrices_; }

  // One thread per counter.
  std::int64_t overflow_counters() const override { return 4096; }

  void count_overflows(const Tensor& values, float limit, const Tensor& counters, Accumulate accumulate) override {
    launch_(overflow_counters(), CountOverflows{values.as<float>(), values.shape().count(), limit, overflow_counters(),
                                                counters.as<float>(), accumulate});
  }

  void sum_overflows(const Tensor& counters, const Tensor& count) override {
    launch_.in_blocks(
        1, FinishInBlocks<FinishSums>{
               {counters.as<float>(), 1, overflow_counters()}, 1, {1, count.as<float>(), Accumulate::overwrite}});
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
  KernelMatrixPasses<Launch> matrices_;
};

}  // namespace lockstep::cuda
