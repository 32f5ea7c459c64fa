// Passes over the flat arrays of a model, on the device that holds them: what an optimizer needs beside the layers'
// arithmetic.
#pragma once

#include <memory>
#include <vector>

#include "device/device.hpp"
#include "optim/sgd_update.hpp"

namespace lockstep {

// fp32, plain, one-dimensional. `values` may be longer than the gradients, which say how much of it is updated.
struct SgdArrays {
  Tensor gradients;
  Tensor velocity;
  Tensor values;
};

// Every call is stream-ordered. The arithmetic is that of optim/sgd_update.hpp.
class FlatUpdates {
 public:
  virtual ~FlatUpdates() = default;

  virtual void sgd(const SgdRates& rates, const SgdArrays& arrays) = 0;
  virtual void average(const Tensor& batch, float momentum, const Tensor& running) = 0;
  // Overwrites count[0] with the number of infinities and NaNs in `values`, or adds it.
  virtual void count_non_finite(const Tensor& values, const Tensor& count, Accumulate accumulate) = 0;
};

// `runs` as sgd_update() takes them; `device` outlives the updates.
std::unique_ptr<FlatUpdates> make_flat_updates(Device& device, std::vector<DecayRun> runs);

}  // namespace lockstep
