// Muon (Jordan 2024, github.com/KellerJordan/cifar10-airbench, airbench94_muon.py): momentum, orthogonalized.
//
// It updates the weights of convolutions between the first and the last layer that learn (whose --lr-scale is not 0).
// All other parameters have SGD. A weight w is a matrix with a row per output channel, and g its gradient:
//
//   velocity = momentum * velocity + g
//   x        = velocity, or g + momentum * velocity (nesterov)
//   x        = x / (|x| + 1e-7)        so that no singular value is above 1
//   x        = 3.4445 x - 4.7750 (x x^T) x + 2.0315 (x x^T)^2 x        Newton-Schulz, `ns_steps` times
//   w        = sqrt(rows) / |w| * w     the source normalizes weights in its step, too
//   w       -= learning_rate * x
//
// Norms are Frobenius norms. An iteration maps each singular value of x by this polynomial, which raises small ones by
// 3.4 and keeps large ones between 0.7 and 1.2, and the singular vectors stay. A matrix with more rows than columns is
// transposed for this: the result is the same, and x x^T is smaller. Weights that a batch norm follows have no scale of
// their own, so a fixed norm also fixes how far a step turns them. The source computes x in bf16, this in fp32.
//
// Products run as those of a linear layer (Ops): a = x x^T, s = a a^T, since a is symmetric, and then x = b x with
// b = 3.4445 I - 4.7750 a + 2.0315 s, which saves a pass over x. On one Zen 4 core with AVX2, this takes 0.1 s for
// airbench's weights (bench/state_bench.cpp), about 1 % of the processor time of a step of 2,000 images.
#pragma once

#include <vector>

#include "device/flat/matrix_passes.hpp"
#include "nn/parameter_store.hpp"
#include "optim/optimizer_options.hpp"

namespace lockstep {

// The weights that Muon updates. Throws Error(usage) if there are none.
std::vector<const Parameter*> muon_weights(const ParameterStore& store, const OptimizerOptions& options);

// The part of a step before MuonRule: finds the directions.
class MuonDirections {
 public:
  // `store` is allocated and outlives this. `velocity` is an array [gradient_count].
  MuonDirections(ParameterStore& store, const std::vector<const Parameter*>& weights, const OptimizerOptions& options,
                 Tensor velocity);

  // Replaces the gradients of the weights by their directions x. Stream-ordered.
  void find(const StepRecord& record) const;

 private:
  Tensor orthogonalized(Tensor x) const;

  ParameterStore& store_;
  MatrixMomentum momentum_;
  int ns_steps_;
  Tensor velocity_;
  std::vector<FlatMatrix> matrices_;
};

}  // namespace lockstep
