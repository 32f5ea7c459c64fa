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
        segments_(segments_of(runs_, arrays_)),
        rates_(runs.size()),
        norms_(context, loops, Rule::rates_are == RatesAre::adapted ? runs_ : std::vector<UpdateRun>()) {
    assert(arrays_.states.size() == Rule::states && !runs.empty());
    assert(arrays_.values.shape().count() >= arrays_.gradients.shape().count());
  }

  void run(const StepRecord& record) override {
    if (!is_applied(record)) return;
    find_rates({*record.at(step_learning_rate).as<float>(), *record.at(step_gradient_scale).as<float>(),
                *record.at(step_applied_steps).as<float>()});
    // Each thread takes an equal share of all segments, because most of a network's runs are tiny.
    const std::int64_t elements = segments_.empty() ? 0 : segments_.back().state + segments_.back().count;
    parallel_parts(context_.threads, elements, [&](std::int64_t first, std::int64_t last) {
      for (const Segment& segment : segments_) {
        const std::int64_t begin = std::max(segment.state, first);
        const std::int64_t end = std::min(segment.state + segment.count, last);
        if (begin < end) update(segment.first + begin - segment.state, begin, end - begin, rates_[segment.run]);
      }
    });
  }

 private:
  using Rates = typename Rule::Rates;

  // Elements with the same update that are contiguous in all arrays.
  struct Segment {
    std::int64_t first;  // in gradients and values
    std::int64_t state;  // in the state arrays
    std::int64_t count;
    std::size_t run;
  };

  static std::vector<Segment> segments_of(std::span<const UpdateRun> runs, const UpdateArrays& arrays) {
    std::vector<Segment> segments;
    std::int64_t state = 0;
    for (const FlatPart& part : parts_of(arrays)) {
      for (std::size_t index = 0; index < runs.size(); ++index) {
        const std::int64_t first = std::max(runs[index].first, part.first);
        const std::int64_t end = std::min(runs[index].first + runs[index].count, part.first + part.count);
        if (first < end) segments.push_back({first, state + first - part.first, end - first, index});
      }
      state += part.count;
    }
    return segments;
  }

  void find_rates(const StepRates& step) {
    if constexpr (Rule::rates_are == RatesAre::adapted) {
      norms_.sum(arrays_.values.template as<float>(), values_);
      norms_.sum(arrays_.gradients.template as<float>(), gradients_);
    }
    for (std::size_t index = 0; index < runs_.size(); ++index) {
      rates_[index] = rule_.rates(step, runs_[index], {values_[index], gradients_[index]});
    }
  }

  void update(std::int64_t first, std::int64_t state_first, std::int64_t count, const Rates& given) const {
    // Copies. Otherwise the compiler would have to assume that a store changes a factor.
    const Rule rule = rule_;
    const Rates rates = given;
    const float* const gradients = arrays_.gradients.template as<float>() + first;
    float* const values = arrays_.values.template as<float>() + first;
    std::array<float*, Rule::states> states{};
    for (std::size_t k = 0; k < states.size(); ++k) states[k] = arrays_.states[k].template as<float>() + state_first;
    for (std::int64_t i = 0; i < count; ++i) {
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
  std::vector<Segment> segments_;  // of all parts, in the order of the state arrays
  std::vector<Rates> rates_;       // of each run, in this step
  SquareSums norms_;
  std::vector<double> values_ = std::vector<double>(runs_.size());  // sums of squares per run, if the rule uses them
  std::vector<double> gradients_ = std::vector<double>(runs_.size());
};

}  // namespace lockstep::cpu
