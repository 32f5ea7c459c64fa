#include "recipe/learning_fields.hpp"

#include <array>

#include "recipe/field_makers.hpp"

namespace lockstep {
namespace {

constexpr std::array<Choice<OptimizerKind>, 3> optimizers{
    {{"sgd", OptimizerKind::sgd}, {"lars", OptimizerKind::lars}, {"adamw", OptimizerKind::adamw}}};
constexpr std::array<Choice<Schedule>, 5> schedules{{{"constant", Schedule::constant},
                                                     {"step", Schedule::step},
                                                     {"cosine", Schedule::cosine},
                                                     {"poly", Schedule::poly},
                                                     {"one-cycle", Schedule::one_cycle}}};

}  // namespace

std::vector<Field> optimizer_fields() {
  constexpr FieldGroup group = FieldGroup::optimizer;
  constexpr auto share = from_to(0.0F, 0.9999999F);
  return {
      one_value({"optimizer", group, "NAME",
                 "sgd; lars: rates by the norms of weights and gradients, for large batches; adamw. Each wants a --lr "
                 "of its own"},
                of(&Recipe::optimizer, &OptimizerChoice::kind), one_of(optimizers)),
      read_by(one_value({"momentum", group, "SHARE", "Of sgd and lars"},
                        of(&Recipe::optimizer, &OptimizerChoice::momentum), from_to(0.0F, 0.9999F)),
              "optimizer", {"sgd", "lars"}),
      read_by(flag({"nesterov", group, "", "Nesterov's form of momentum"},
                   of(&Recipe::optimizer, &OptimizerChoice::momentum_kind), Momentum::nesterov, Momentum::classic),
              "optimizer", {"sgd", "lars"}),
      one_value({"weight-decay", group, "FACTOR", "Pull of each weight towards zero"},
                of(&Recipe::optimizer, &OptimizerChoice::weight_decay), from_to(0.0F, static_cast<float>(largest))),
      read_by(flag({"no-decay-norm", group, "", "No weight decay on norms and biases; lars never has"},
                   of(&Recipe::optimizer, &OptimizerChoice::decay_scope), DecayScope::weights_only, DecayScope::all),
              "optimizer", {"sgd", "adamw"}),
      read_by(one_value({"trust", group, "FACTOR", "Of lars: rate of a layer's weights, in their norm"},
                        of(&Recipe::optimizer, &OptimizerChoice::trust),
                        NumberForm<float>{{0, static_cast<float>(largest), LeastIs::excluded}}),
              "optimizer", {"lars"}),
      read_by(one_value({"beta1", group, "SHARE", "Of adamw: of the mean of gradients that stays in a step"},
                        of(&Recipe::optimizer, &OptimizerChoice::beta1), share),
              "optimizer", {"adamw"}),
      read_by(one_value({"beta2", group, "SHARE", "Of adamw: the same of their squares"},
                        of(&Recipe::optimizer, &OptimizerChoice::beta2), share),
              "optimizer", {"adamw"}),
      read_by(
          one_value({"epsilon", group, "SIZE", "Of adamw: added to the root of the mean square"},
                    of(&Recipe::optimizer, &OptimizerChoice::epsilon), NumberForm<float>{{0, 1, LeastIs::excluded}}),
          "optimizer", {"adamw"}),
      one_value({"clip-norm", group, "NORM", "Most that the norm of all gradients of a step may be; unset: any"},
                of(&Recipe::optimizer, &OptimizerChoice::clip_norm),
                NumberForm<float>{{0, static_cast<float>(largest), LeastIs::excluded}}),
      one_value({"ema", group, "DECAY",
                 "Keep a mean of the weights over steps, after the warm-up, of which so much stays at a time; it is "
                 "tested beside them and is what model.h5 holds"},
                of(&Recipe::ema, &EmaOptions::decay), from_to(0.0, 0.9999999)),
      needs(one_value({"ema-every", group, "STEPS", "With --ema: steps from one time to the next"},
                      of(&Recipe::ema, &EmaOptions::every), any_count),
            "ema"),
  };
}

std::vector<Field> schedule_fields() {
  constexpr FieldGroup group = FieldGroup::schedule;
  return {
      also_called(one_value({"lr", group, "RATE", "Peak learning rate for a global batch of --lr-batch"},
                            of(&Recipe::learning_rate, &LearningRate::rate), above_zero),
                  "learning-rate"),
      one_value({"lr-batch", group, "SAMPLES",
                 "The rate grows in proportion to the global batch from here; 0: --lr is taken as it is"},
                of(&Recipe::learning_rate, &LearningRate::base_batch), any_count_or_none),
      one_value({"schedule", group, "NAME", "Course of the rate"}, of(&Recipe::learning_rate, &LearningRate::schedule),
                one_of(schedules)),
      one_value({"warmup", group, "EPOCHS",
                 "Epochs (or parts of one) of rising rate; unset: a fifth of all with one-cycle, else none"},
                of(&Recipe::learning_rate, &LearningRate::warmup_epochs), from_zero),
      read_by(one_value({"warmup-from", group, "SHARE",
                         "Share of the rate that the warm-up begins with; unset: one step's part of it"},
                        of(&Recipe::learning_rate, &LearningRate::warmup_from), from_to(0.0, 1.0)),
              "schedule", {"constant", "step", "cosine", "poly"}),
      read_by(
          one_value({"poly-power", group, "POWER",
                     "With --schedule poly: the rate falls as this power of what is left; 1: in a straight line"},
                    of(&Recipe::learning_rate, &LearningRate::power), NumberForm<double>{{0, 100, LeastIs::excluded}}),
          "schedule", {"poly"}),
      read_by(one_value({"lr-end", group, "RATE", "With --schedule cosine or poly: the last rate, whatever the batch"},
                        of(&Recipe::learning_rate, &LearningRate::end), from_zero),
              "schedule", {"cosine", "poly"}),
      read_by(list_of_values({"milestones", group, "EPOCHS", "With --schedule step: epochs after which the rate falls"},
                             of(&Recipe::learning_rate, &LearningRate::milestones), from_zero),
              "schedule", {"step"}),
      read_by(one_value({"lr-factor", group, "FACTOR",
                         "With --schedule step: the rate is multiplied by this at each milestone"},
                        of(&Recipe::learning_rate, &LearningRate::factor), above_zero),
              "schedule", {"step"}),
  };
}

}  // namespace lockstep
