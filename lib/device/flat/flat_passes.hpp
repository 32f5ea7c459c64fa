// Passes over the flat arrays of a model, on the device that holds them: the part of a step outside the layers.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "device/device.hpp"
#include "device/flat/ema_rule.hpp"
#include "device/flat/fixed_point.hpp"
#include "device/flat/step_record.hpp"
#include "device/flat/update_rule.hpp"

namespace lockstep {

class LowRankPasses;
class MatrixPasses;

// Elements [first, first + count) of a flat array. `first` is a multiple of 16.
struct FlatPart {
  std::int64_t first;
  std::int64_t count;
  bool operator==(const FlatPart&) const = default;
};

// Arrays of one optimizer: fp32, plain, one-dimensional. `values` may be longer than `gradients`; only the length of
// `gradients` is updated.
struct UpdateArrays {
  Tensor gradients;
  Tensor values;
  std::vector<Tensor> states;  // Rule::states arrays of the updated elements alone, one part after another
  std::optional<std::vector<FlatPart>> parts = {};  // what is updated, in ascending order; unset: everything
};

// `parts`, or everything.
inline std::vector<FlatPart> parts_of(const UpdateArrays& arrays) {
  return arrays.parts.value_or(std::vector<FlatPart>{{0, arrays.gradients.shape().count()}});
}

// How the gradients of a step are clipped before an update. Limits are above zero, and those of the unscaled gradients.
struct GradientClip {
  std::optional<float> norm = {};   // limit of the global norm, see clip_step(); unset: any norm
  std::optional<float> value = {};  // limit of each component, see clip_value(), before the norm; unset: any value
};

// Indices of judge()'s inputs in the metric slots of the flat gradient buffer.
struct MetricSlots {
  std::int64_t loss;
  std::int64_t overflow;
};

// A pass of an optimizer over its arrays.
class FlatUpdate {
 public:
  virtual ~FlatUpdate() = default;
  // Uses the values in the record. Changes no weight unless the verdict there is `applied`. Stream-ordered.
  virtual void run(const StepRecord& record) = 0;
};

// Every call is stream-ordered.
class FlatPasses {
 public:
  virtual ~FlatPasses() = default;

  // Updates `arrays` by `rule`, element by element. `runs` are contiguous, start at element 0 and at multiples of 16.
  // Norms that a rule uses for its rates are those of whole runs, also if only parts are updated, and do not depend on
  // the number of threads. The device outlives the update.
  virtual std::unique_ptr<FlatUpdate> make_update(const UpdateRule& rule, std::span<const UpdateRun> runs,
                                                  const UpdateArrays& arrays) = 0;

  // Clips the gradients of `arrays`. Values are clipped in place, in the parts of `arrays`. If the norm of all
  // gradients is clipped, stores it in the record, and the gradient scale that clips it. The norm does not depend on
  // the number of threads. The device outlives the update.
  virtual std::unique_ptr<FlatUpdate> make_clip(const GradientClip& clip, const UpdateArrays& arrays) = 0;

  // Every element of `values`, which is no array that a layer reads, becomes `value`.
  virtual void set(const Tensor& values, float value) = 0;
  // Stores the verdict on a step in its record, and a copy of `metric_slots`.
  virtual void judge(const Tensor& metric_slots, const MetricSlots& places, const StepRecord& record) = 0;
  // running = averaged(running, momentum, batch), if the verdict in the record is `applied`.
  virtual void average(const Tensor& batch, float momentum, const Tensor& running, const StepRecord& record) = 0;
  // mean = averaged(mean, share, values), with the rule's share after this step (EMA). If the rule leads, values = mean
  // in the same steps. `values` as in exchange().
  virtual void follow(const Tensor& values, const EmaRule& rule, const Tensor& mean, const StepRecord& record) = 0;
  // Swaps the elements of both. `values` is a parameter array or an array that no layer reads.
  virtual void exchange(const Tensor& values, const Tensor& other) = 0;
  // values = other. `values` as in exchange().
  virtual void copy(const Tensor& other, const Tensor& values) = 0;
  // difference = (a - b) * factor. `difference` may be one of the two, and is no array that a layer reads.
  virtual void subtract(const Tensor& a, const Tensor& b, float factor, const Tensor& difference) = 0;
  // `values`, a parameter array, was changed by something other than these passes and Device::store(), such as a gather
  // over ranks: renews what the device keeps beside it (a half-precision copy).
  virtual void renew_copies(const Tensor& values) = 0;
  // counters (+)= numbers of `values` with |value| >= `limit` or NaN, divided among this device's `overflow_counters()`
  // elements, so that each of several arrays takes one pass. Their sum is exact up to 2^24, and zero only if all are.
  virtual std::int64_t overflow_counters() const = 0;
  virtual void count_overflows(const Tensor& values, float limit, const Tensor& counters, Accumulate accumulate) = 0;
  // count[0] = sum of `counters`.
  virtual void sum_overflows(const Tensor& counters, const Tensor& count) = 0;

  // For optimizers that use gradients as matrices, see matrix_passes.hpp. Valid as long as the device.
  virtual MatrixPasses& matrices() = 0;
  // For the compression of gradients, see low_rank.hpp. Valid as long as the device. Null on devices without it.
  virtual LowRankPasses* low_rank() { return nullptr; }

  // Converts between fp32 values and i64 sums, element by element, see FixedPoint. Values it cannot hold add nothing.
  virtual void sum_fixed(const Tensor& values, const FixedPoint& form, const Tensor& sums, Accumulate accumulate) = 0;
  virtual void values_of_fixed(const Tensor& sums, const Tensor& values) = 0;
};

}  // namespace lockstep
