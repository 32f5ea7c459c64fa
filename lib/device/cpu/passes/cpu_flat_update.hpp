// An optimizer's pass over flat arrays in host memory. First the rates of each run, then one loop over all elements. No
// result depends on the number of threads.
#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <span>
#include <utility>
#include <vector>

#include "device/cpu/cpu_context.hpp"
#include "device/cpu/passes/square_sums.hpp"
#include "device/cpu/threads/parallel.hpp"
#include "device/flat/flat_passes.hpp"

namespace lockstep::cpu {

inline bool is_applied(const StepRecord& record) {
  return *record.at(step_verdict).as<float>() == static_cast<float>(StepVerdict::applied);
}

template <typename Rule>
class CpuFlatUpdate final : public FlatUpdate {
 public:
  CpuFlatUpdate(const CpuContext& context, const VectorLoops& loops, const Rule& rule, std::span<const UpdateRun> runs,
                UpdateArrays arrays)
      : context_(context),
        rule_(rule),
        runs_(runs.begin(), runs.end()),
        arrays_(std::move(arrays)),
        rates_(runs.size()),
        norms_(context, loops, Rule::rates_are == RatesAre::adapted ? runs_ : std::vector<UpdateRun>()) {
    assert(arrays_.states.size() == Rule::states && !runs.empty());
    assert(arrays_.values.shape().count() >= arrays_.gradients.shape().count());
  }

  void run(const StepRecord& record) override {
    if (!is_applied(record)) return;
    find_rates({*record.at(step_learning_rate).as<float>(), *record.at(step_gradient_scale).as<float>(),
                *record.at(step_applied_steps).as<float>()});
    // Each thread takes one part of all runs, because most of a network's runs are tiny.
    parallel_parts(context_.threads, arrays_.gradients.shape().count(), [&](std::int64_t first, std::int64_t last) {
      for (std::size_t index = 0; index < runs_.size(); ++index) {
        const UpdateRun& run = runs_[index];
        update(std::max(run.first, first), std::min(run.first + run.count, last), rates_[index]);
      }
    });
  }

 private:
  using Rates = typename Rule::Rates;

  void find_rates(const StepRates& step) {
    if constexpr (Rule::rates_are == RatesAre::adapted) {
      norms_.sum(arrays_.values.template as<float>(), values_);
      norms_.sum(arrays_.gradients.template as<float>(), gradients_);
    }
    for (std::size_t index = 0; index < runs_.size(); ++index) {
      rates_[index] = rule_.rates(step, runs_[index], {values_[index], gradients_[index]});
    }
  }

  void update(std::int64_t first, std::int64_t last, const Rates& given) const {
    // Copies. Otherwise the compiler would have to assume that a store changes a factor.
    const Rule rule = rule_;
    const Rates rates = given;
    const float* const gradients = arrays_.gradients.template as<float>();
    float* const values = arrays_.values.template as<float>();
    std::array<float*, Rule::states> states{};
    for (std::size_t k = 0; k < states.size(); ++k) states[k] = arrays_.states[k].template as<float>();
    for (std::int64_t i = first; i < last; ++i) {
      std::array<float, Rule::states> state;
      for (std::size_t k = 0; k < states.size(); ++k) state[k] = states[k][i];
      float value = values[i];
      rule(rates, gradients[i], state.data(), value);
      for (std::size_t k = 0; k < states.size(); ++k) states[k][i] = state[k];
      values[i] = value;
    }
  }

  const CpuContext& context_;
  Rule rule_;
  std::vector<UpdateRun> runs_;
  UpdateArrays arrays_;
  std::vector<Rates> rates_;  // of each run, in this step
  SquareSums norms_;
  std::vector<double> values_ = std::vector<double>(runs_.size());  // sums of squares per run, if the rule uses them
  std::vector<double> gradients_ = std::vector<double>(runs_.size());
};

}  // namespace lockstep::cpu
