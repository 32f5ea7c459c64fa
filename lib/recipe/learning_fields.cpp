#include "recipe/learning_fields.hpp"

#include <array>

#include "recipe/field_makers.hpp"

namespace lockstep {
namespace {

constexpr std::array<Choice<OptimizerKind>, 4> optimizers{{{"sgd", OptimizerKind::sgd},
                                                           {"lars", OptimizerKind::lars},
                                                           {"adamw", OptimizerKind::adamw},
                                                           {"muon", OptimizerKind::muon}}};
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
      common(one_value(
          {"optimizer", group, "NAME",
           "Optimizer; lars, adamw and muon need their own --lr. muon updates convolutions between the first and the "
           "last layer, and SGD all other parameters"},
          of(&Recipe::optimizer, &OptimizerOptions::kind), one_of(optimizers))),
      read_by(one_value({"momentum", group, "SHARE", "SGD, LARS: momentum; Muon: that of parameters with SGD"},
                        of(&Recipe::optimizer, &OptimizerOptions::momentum), from_to(0.0F, 0.9999F)),
              "optimizer", {"sgd", "lars", "muon"}),
      read_by(flag({"nesterov", group, "", "SGD, LARS, Muon: Nesterov momentum"},
                   of(&Recipe::optimizer, &OptimizerOptions::momentum_kind), Momentum::nesterov, Momentum::classic),
              "optimizer", {"sgd", "lars", "muon"}),
      read_by(
          recorded_if_set(one_value({"muon-momentum", group, "SHARE",
                                     "Muon: momentum of the weights that it updates (default: 0.6, as "
                                     "airbench94_muon; torch.optim.Muon: 0.95)"},
                                    of(&Recipe::optimizer, &OptimizerOptions::muon_momentum), from_to(0.0F, 0.9999F))),
          "optimizer", {"muon"}),
      read_by(recorded_if_set(one_value({"ns-steps", group, "STEPS",
                                         "Muon: Newton-Schulz iterations (default: 3, as airbench94_muon; "
                                         "torch.optim.Muon: 5)"},
                                        of(&Recipe::optimizer, &OptimizerOptions::ns_steps), from_to(1, 100))),
              "optimizer", {"muon"}),
      common(one_value({"weight-decay", group, "FACTOR", "Weight decay; Muon: of parameters with SGD"},
                       of(&Recipe::optimizer, &OptimizerOptions::weight_decay),
                       from_to(0.0F, static_cast<float>(largest)))),
      read_by(flag({"no-decay-norm", group, "",
                    "SGD, AdamW, Muon: no weight decay on batch norms and biases. LARS never decays them"},
                   of(&Recipe::optimizer, &OptimizerOptions::decay_scope), DecayScope::weights_only, DecayScope::all),
              "optimizer", {"sgd", "adamw", "muon"}),
      read_by(one_value({"trust", group, "FACTOR", "LARS: trust coefficient"},
                        of(&Recipe::optimizer, &OptimizerOptions::trust_coefficient),
                        NumberForm<float>{{0, static_cast<float>(largest), LeastIs::excluded}}),
              "optimizer", {"lars"}),
      read_by(one_value({"beta1", group, "SHARE", "AdamW: decay rate of the first moment"},
                        of(&Recipe::optimizer, &OptimizerOptions::beta1), share),
              "optimizer", {"adamw"}),
      read_by(one_value({"beta2", group, "SHARE", "AdamW: decay rate of the second moment"},
                        of(&Recipe::optimizer, &OptimizerOptions::beta2), share),
              "optimizer", {"adamw"}),
      read_by(
          one_value({"epsilon", group, "SIZE", "AdamW: term added to the denominator"},
                    of(&Recipe::optimizer, &OptimizerOptions::epsilon), NumberForm<float>{{0, 1, LeastIs::excluded}}),
          "optimizer", {"adamw"}),
      list_of_values(
          {"lr-scale", group, "PATTERN=FACTOR",
           "Parameters whose names match learn at FACTOR times the rate, 0: not at all; may be repeated, the "
           "last match counts ('fc.*=10'). Replaces the recipe's patterns"},
          of(&Recipe::optimizer, &OptimizerOptions::rate_scales), RateScaleForm()),
      one_value({"clip-norm", group, "NORM", "Clip the global gradient norm to this value (default: no clipping)"},
                of(&Recipe::optimizer, &OptimizerOptions::clip, &GradientClip::norm),
                NumberForm<float>{{0, static_cast<float>(largest), LeastIs::excluded}}),
      recorded_if_set(one_value(
          {"clip-value", group, "VALUE",
           "Clip each gradient component to [-VALUE, VALUE], before --clip-norm clips the norm (default: no clipping)"},
          of(&Recipe::optimizer, &OptimizerOptions::clip, &GradientClip::value),
          NumberForm<float>{{0, static_cast<float>(largest), LeastIs::excluded}})),
      one_value({"ema", group, "DECAY",
                 "Keep an exponential moving average (EMA) of the weights after the warm-up; model.h5 holds the EMA"},
                of(&Recipe::ema, &EmaOptions::decay), from_to(0.0, 0.9999999)),
      needs(one_value({"ema-every", group, "STEPS", "With --ema: steps between two updates of the EMA"},
                      of(&Recipe::ema, &EmaOptions::every), any_count),
            "ema"),
      needs(one_value({"ema-ramp", group, "POWER",
                       "With --ema: the decay grows to DECAY with this power of the training's progress; 0: it is "
                       "constant"},
                      of(&Recipe::ema, &EmaOptions::ramp_power), from_to(0, 16)),
            "ema"),
      needs(flag({"lookahead", group, "",
                  "With --ema: at each update of the EMA, the weights become equal to it (Zhang et al. 2019)"},
                 of(&Recipe::ema, &EmaOptions::leads), true, false),
            "ema"),
  };
}

std::vector<Field> schedule_fields() {
  constexpr FieldGroup group = FieldGroup::schedule;
  return {
      also_called(common(one_value({"lr", group, "RATE", "Peak learning rate at a global batch of --lr-batch"},
                                   of(&Recipe::learning_rate, &LearningRate::rate), above_zero)),
                  "learning-rate"),
      one_value({"lr-batch", group, "SAMPLES",
                 "Global batch that --lr is for; the rate scales linearly with the batch. 0: no scaling"},
                of(&Recipe::learning_rate, &LearningRate::base_batch), any_count_or_none),
      common(one_value({"schedule", group, "NAME", "Learning rate schedule"},
                       of(&Recipe::learning_rate, &LearningRate::schedule), one_of(schedules))),
      common(one_value(
          {"warmup", group, "EPOCHS",
           "Epochs of linear warm-up, fractions allowed (default: a fifth of the epochs with one-cycle, else none)"},
          of(&Recipe::learning_rate, &LearningRate::warmup_epochs), from_zero)),
      read_by(one_value({"warmup-from", group, "SHARE",
                         "Share of --lr at which the warm-up starts (default: one step's increase)"},
                        of(&Recipe::learning_rate, &LearningRate::warmup_from), from_to(0.0, 1.0)),
              "schedule", {"constant", "step", "cosine", "poly"}),
      read_by(
          one_value({"poly-power", group, "POWER", "With --schedule poly: exponent of the decay"},
                    of(&Recipe::learning_rate, &LearningRate::power), NumberForm<double>{{0, 100, LeastIs::excluded}}),
          "schedule", {"poly"}),
      read_by(one_value({"lr-end", group, "RATE",
                         "With --schedule cosine or poly: final learning rate, not scaled with the batch"},
                        of(&Recipe::learning_rate, &LearningRate::end), from_zero),
              "schedule", {"cosine", "poly"}),
      read_by(comma_separated(list_of_values(
                  {"milestones", group, "EPOCHS",
                   "With --schedule step: epochs after which the rate is multiplied by --lr-factor, such as 30,60"},
                  of(&Recipe::learning_rate, &LearningRate::milestones), from_zero)),
              "schedule", {"step"}),
      read_by(one_value({"lr-factor", group, "FACTOR", "With --schedule step: factor at each milestone"},
                        of(&Recipe::learning_rate, &LearningRate::factor), above_zero),
              "schedule", {"step"}),
  };
}

}  // namespace lockstep
