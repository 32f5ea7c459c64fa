// The optimizers of embedding tables. They update the rows that a step has touched, and no others.
//
// Each is a rule for one element, as those in device/flat/update_rule.hpp. g is the gradient. The state of an untouched
// row stays as it is, so a row that is seldom touched learns as fast as one that is always touched. Weight decay
// reaches all rows: RowTable applies it to untouched rows later, when they are read (catch-up).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "device/flat/update_rule.hpp"
#include "optim/lr_schedule.hpp"

namespace lockstep {

enum class RowOptimizerKind : std::uint8_t { sgd, adagrad, rmsprop, adamw };

struct RowOptimizerOptions {
  RowOptimizerKind kind = RowOptimizerKind::sgd;
  float learning_rate = 0.01F;
  float weight_decay = 0;    // of sgd and adamw
  float decay_rate = 0.99F;  // of the squares of rmsprop; PyTorch's `alpha`
  float beta1 = 0.9F;        // of adamw
  float beta2 = 0.999F;
  float epsilon = 1e-8F;                    // of all but sgd
  std::optional<LrSchedule> schedule = {};  // of the learning rate, whose peak it has; unset: it is constant

  float rate_at(std::int64_t step) const;  // from 0
};

// torch.optim.SGD without momentum:
//
//   value = (1 - learning_rate * weight_decay) * value - learning_rate * g
struct RowSgdRule {
  static constexpr int states = 0;
  struct Rates {
    float learning_rate;
    float kept;  // factor of the old value
  };

  Rates rates(const StepRates& step, const UpdateRun& run, const RunSquares& /*squares*/) const {
    return {step.learning_rate,
            static_cast<float>(1 - static_cast<double>(step.learning_rate) * static_cast<double>(run.weight_decay))};
  }
  void operator()(const Rates& rates, float g, float* /*state*/, float& value) const {
    value = rates.kept * value - rates.learning_rate * g;
  }
};

// Duchi, Hazan and Singer 2011, as torch.optim.Adagrad computes it, also for sparse gradients:
//
//   squares = squares + g^2
//   value   = value - learning_rate * g / (sqrt(squares) + epsilon)
struct AdagradRule {
  static constexpr int states = 1;
  struct Rates {
    float learning_rate;
  };
  float epsilon;

  Rates rates(const StepRates& step, const UpdateRun& /*run*/, const RunSquares& /*squares*/) const {
    return {step.learning_rate};
  }
  void operator()(const Rates& rates, float g, float* state, float& value) const {
    state[0] += g * g;
    value -= rates.learning_rate * g / (sqrtf(state[0]) + epsilon);
  }
};

// Tieleman and Hinton 2012, as torch.optim.RMSprop computes it for a row in the steps that touch it:
//
//   squares = decay_rate * squares + (1 - decay_rate) * g^2
//   value   = value - learning_rate * g / (sqrt(squares) + epsilon)
struct RmspropRule {
  static constexpr int states = 1;
  struct Rates {
    float learning_rate;
  };
  float decay_rate;
  float epsilon;

  Rates rates(const StepRates& step, const UpdateRun& /*run*/, const RunSquares& /*squares*/) const {
    return {step.learning_rate};
  }
  void operator()(const Rates& rates, float g, float* state, float& value) const {
    state[0] = decay_rate * state[0] + (1.0F - decay_rate) * g * g;
    value -= rates.learning_rate * g / (sqrtf(state[0]) + epsilon);
  }
};

// With AdamWRule, a touched row moves as with torch.optim.AdamW. Bias correction counts all steps, as in
// torch.optim.SparseAdam.
using RowRule = std::variant<RowSgdRule, AdagradRule, RmspropRule, AdamWRule>;

// Throws Error(usage) for a weight decay with adagrad or rmsprop, whose untouched rows would need their state for it,
// and with a schedule for one whose steps leave nothing of a value, as catch-up adds logarithms.
RowRule row_rule(const RowOptimizerOptions& options);
// Names of the rule's state arrays, as optimizers of dense parameters name theirs.
std::vector<std::string> state_names(const RowRule& rule);

}  // namespace lockstep
