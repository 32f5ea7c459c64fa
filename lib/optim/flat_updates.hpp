// Passes over the flat arrays of a model, on the device that holds them: what an optimizer needs beside the layers'
// arithmetic.
#pragma once

#include <memory>
#include <vector>

#include "device/device.hpp"
#include "optim/fixed_point.hpp"
#include "optim/sgd_update.hpp"
#include "optim/step_record.hpp"

namespace lockstep {

// fp32, plain, one-dimensional. `values` may be longer than the gradients, which say how much of it is updated.
struct SgdArrays {
  Tensor gradients;
  Tensor velocity;
  Tensor values;
};

// Where judge() finds what it rests on in the tail of the reduced array.
struct TailPlaces {
  std::int64_t loss;
  std::int64_t overflow;
};

// Every call is stream-ordered. The arithmetic is that of optim/sgd_update.hpp and optim/step_record.hpp.
class FlatUpdates {
 public:
  virtual ~FlatUpdates() = default;

  // slot[0] = value.
  virtual void set(const Tensor& slot, float value) = 0;
  // Puts the verdict on a step into its record, and a copy of `tail`.
  virtual void judge(const Tensor& tail, const TailPlaces& places, const StepRecord& record) = 0;
  // By the rate and the gradient scale in the record. Unless the verdict is `applied`, these two change nothing.
  virtual void sgd(const SgdRule& rule, const SgdArrays& arrays, const StepRecord& record) = 0;
  virtual void average(const Tensor& batch, float momentum, const Tensor& running, const StepRecord& record) = 0;
  // Overwrites count[0] with how many of `values` are not smaller in size than `limit` (NaNs are not), or adds it.
  virtual void count_outside(const Tensor& values, float limit, const Tensor& count, Accumulate accumulate) = 0;

  // Between fp32 values and sums in i64, place by place: see FixedPoint. What it does not hold adds nothing.
  virtual void sum_fixed(const Tensor& values, const FixedPoint& form, const Tensor& sums, Accumulate accumulate) = 0;
  virtual void values_of_fixed(const Tensor& sums, const Tensor& values) = 0;
};

// `runs` as sgd_update() takes them; `device` outlives the updates.
std::unique_ptr<FlatUpdates> make_flat_updates(Device& device, std::vector<DecayRun> runs);

}  // namespace lockstep
