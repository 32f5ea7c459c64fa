// Optimizer options, as the recipe states them. device/flat/update_rule.hpp has the arithmetic.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "device/flat/flat_passes.hpp"

namespace lockstep {

// State arrays in brackets.
enum class OptimizerKind : std::uint8_t {
  sgd,    // with momentum ["velocity"]
  lars,   // for large batches. Norms and biases get neither adaptation nor decay, as in MLPerf's reference
          // ["scaled_velocity", which includes the learning rate]
  adamw,  // ["first_moment", "second_moment"]
  muon    // optim/muon.hpp; `momentum` and `weight_decay` are those of parameters with SGD ["muon_velocity"]
};

// As in airbench94_muon.py. torch.optim.Muon has 0.95 and 5.
constexpr float default_muon_momentum = 0.6F;
constexpr int default_ns_steps = 3;

// Parameters that weight decay applies to. Large-batch recipes often exclude norms and biases, which hardly overfit.
enum class DecayScope : std::uint8_t { all, weights_only };

// Parameters whose names match `pattern`, a shell pattern as in fnmatch(3), learn at `factor` times the rate.
struct RateScale {
  std::string pattern;
  float factor;  // 0: they keep their values
  bool operator==(const RateScale&) const = default;
};

// Options of all optimizers. The table of fields (recipe/learning_fields.cpp) states which optimizer reads which one.
struct OptimizerOptions {
  OptimizerKind kind = OptimizerKind::sgd;
  float momentum = 0.9F;
  Momentum momentum_kind = Momentum::classic;
  float weight_decay = 5e-4F;
  DecayScope decay_scope = DecayScope::all;
  float trust_coefficient = 0.001F;
  float beta1 = 0.9F;
  float beta2 = 0.999F;
  float epsilon = 1e-8F;
  std::optional<float> muon_momentum = {};  // of orthogonalized weights; unset: the default
  std::optional<int> ns_steps = {};         // Newton-Schulz iterations; unset: the default
  GradientClip clip = {};
  std::vector<RateScale> rate_scales = {};  // of those that match a name, the last one counts
};

}  // namespace lockstep
