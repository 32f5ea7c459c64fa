// What is chosen of an optimizer; the arithmetic stands in device/flat/update_rule.hpp.
#pragma once

#include <cstdint>
#include <variant>

#include "device/flat/update_rule.hpp"

namespace lockstep {

// What weight decay pulls towards zero. Norms and biases hardly overfit; leaving them out is common in large batches.
enum class DecayScope : std::uint8_t { all, weights_only };

// Its state is the array "velocity".
struct SgdOptions {
  float momentum = 0.9F;
  Momentum kind = Momentum::classic;
  float weight_decay = 5e-4F;
  DecayScope decay_scope = DecayScope::all;
};

// For large batches. Norms and biases neither adapt nor decay, as in MLPerf's reference. Its state is the array
// "scaled_velocity", which has the rate in it.
struct LarsOptions {
  float momentum = 0.9F;
  Momentum kind = Momentum::classic;
  float weight_decay = 5e-5F;
  float trust = 0.001F;
};

// Its state are the arrays "first_moment" and "second_moment".
struct AdamWOptions {
  float beta1 = 0.9F;
  float beta2 = 0.999F;
  float epsilon = 1e-8F;
  float weight_decay = 0.01F;
  DecayScope decay_scope = DecayScope::all;
};

using OptimizerOptions = std::variant<SgdOptions, LarsOptions, AdamWOptions>;

}  // namespace lockstep
