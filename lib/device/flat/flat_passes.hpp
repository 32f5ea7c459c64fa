// Passes over the flat arrays of a model, on the device that holds them: what a step needs beside the layers'
// arithmetic.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "device/device.hpp"
#include "device/flat/fixed_point.hpp"
#include "device/flat/step_record.hpp"
#include "device/flat/update_rule.hpp"

namespace lockstep {

// Of one optimizer: fp32, plain, one-dimensional, laid out alike. `values` may be longer than the gradients, which say
// how much of it is updated.
struct UpdateArrays {
  Tensor gradients;
  Tensor values;
  std::vector<Tensor> states;  // as many as the rule keeps
};

// Where judge() finds what it is_paused on in the metric slots of the flat gradient buffer.
struct MetricSlots {
  std::int64_t loss;
  std::int64_t overflow;
};

// One of an optimizer's passes over its arrays.
class FlatUpdate {
 public:
  virtual ~FlatUpdate() = default;
  // By what stands in the record; changes no weight unless the verdict there is `applied`. Stream-ordered.
  virtual void run(const StepRecord& record) = 0;
};

// Every call is stream-ordered.
class FlatPasses {
 public:
  virtual ~FlatPasses() = default;

  // An update of `arrays` by `rule`, element by element. `runs` lie one after another, the first at element 0, and
  // begin at multiples of 16. The norms that a rule adapts its rates by are the same whatever the number of threads.
  // The device outlives the update.
  virtual std::unique_ptr<FlatUpdate> make_update(const UpdateRule& rule, std::span<const UpdateRun> runs,
                                                  const UpdateArrays& arrays) = 0;

  // A look at `gradients` that puts their norm into the record, and a scale that bounds it by `limit`: see clip_step().
  // The norm is the same whatever the number of threads. The device outlives it.
  virtual std::unique_ptr<FlatUpdate> make_clip(const Tensor& gradients, float limit) = 0;

  // slot[0] = value.
  virtual void set(const Tensor& slot, float value) = 0;
  // Puts the verdict on a step into its record, and a copy of `metric slots`.
  virtual void judge(const Tensor& metric_slots, const MetricSlots& places, const StepRecord& record) = 0;
  // running = averaged(running, momentum, batch), unless the verdict in the record is another than `applied`.
  virtual void average(const Tensor& batch, float momentum, const Tensor& running, const StepRecord& record) = 0;
  // mean = averaged(mean, share, values), with the share that the rule gives after this step.
  virtual void follow(const Tensor& values, const EmaRule& rule, const Tensor& mean, const StepRecord& record) = 0;
  // The elements of both change places, `values` being a parameter array or one that no layer reads.
  virtual void exchange(const Tensor& values, const Tensor& other) = 0;
  // Overwrites count[0] with how many of `values` are not smaller in size than `limit` (NaNs are not), or adds it.
  virtual void count_outside(const Tensor& values, float limit, const Tensor& count, Accumulate accumulate) = 0;

  // Between fp32 values and sums in i64, place by place: see FixedPoint. What it does not hold adds nothing.
  virtual void sum_fixed(const Tensor& values, const FixedPoint& form, const Tensor& sums, Accumulate accumulate) = 0;
  virtual void values_of_fixed(const Tensor& sums, const Tensor& values) = 0;
};

}  // namespace lockstep
