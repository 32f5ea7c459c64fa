#include "embedding/row_rule.hpp"

#include "base/error.hpp"

namespace lockstep {

float RowOptimizerOptions::rate_at(std::int64_t step) const {
  return schedule ? static_cast<float>(schedule->at(step)) : learning_rate;
}

RowRule row_rule(const RowOptimizerOptions& options) {
  const bool decays = options.kind == RowOptimizerKind::sgd || options.kind == RowOptimizerKind::adamw;
  require(
      decays || options.weight_decay == 0, Failure::usage,
      "the optimizers adagrad and rmsprop have no weight decay for sparse rows (--weight-decay {}). Use --optimizer "
      "adamw or sgd, or leave out --weight-decay.",
      options.weight_decay);
  require(!options.schedule || options.learning_rate * options.weight_decay < 1, Failure::usage,
          "--lr {} times --weight-decay {} is 1 or more, which a --schedule does not allow: a step would leave nothing "
          "of a weight. Lower one of the two.",
          options.learning_rate, options.weight_decay);
  switch (options.kind) {
    case RowOptimizerKind::adagrad:
      return AdagradRule{options.epsilon};
    case RowOptimizerKind::rmsprop:
      return RmspropRule{options.decay_rate, options.epsilon};
    case RowOptimizerKind::adamw:
      return AdamWRule{options.beta1, options.beta2, options.epsilon};
    case RowOptimizerKind::sgd:
      break;
  }
  return RowSgdRule{};
}

std::vector<std::string> state_names(const RowRule& rule) {
  if (std::holds_alternative<AdamWRule>(rule)) return {"first_moment", "second_moment"};
  if (std::holds_alternative<RowSgdRule>(rule)) return {};
  return {"squares"};
}

}  // namespace lockstep
