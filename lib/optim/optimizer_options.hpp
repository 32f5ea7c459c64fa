// Optimizer options. device/flat/update_rule.hpp has the arithmetic.
#pragma once

#include <cstdint>
#include <variant>

#include "device/flat/update_rule.hpp"

namespace lockstep {

// Parameters that weight decay applies to. Large-batch recipes often exclude norms and biases, which hardly overfit.
enum class DecayScope : std::uint8_t { all, weights_only };

// SGD with momentum. State array: "velocity".
struct SgdOptions {
  float momentum = 0.9F;
  Momentum kind = Momentum::classic;
  float weight_decay = 5e-4F;
  DecayScope decay_scope = DecayScope::all;
};

// LARS, for large batches. Norms and biases get neither adaptation nor decay, as in MLPerf's reference. State array:
// "scaled_velocity", which includes the learning rate.
struct LarsOptions {
  float momentum = 0.9F;
  Momentum kind = Momentum::classic;
  float weight_decay = 5e-5F;
  float trust_coefficient = 0.001F;
};

// State arrays: "first_moment" and "second_moment".
struct AdamWOptions {
  float beta1 = 0.9F;
  float beta2 = 0.999F;
  float epsilon = 1e-8F;
  float weight_decay = 0.01F;
  DecayScope decay_scope = DecayScope::all;
};

using OptimizerOptions = std::variant<SgdOptions, LarsOptions, AdamWOptions>;

}  // namespace lockstep
