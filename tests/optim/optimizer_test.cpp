#include "optim/optimizer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "device/cpu/cpu_device.hpp"
#include "support/messages.hpp"

namespace lockstep::optimizer_test {

// A net of one of each role, small enough that a device pads most of it. All values 2, all gradients 1.
class OptimizerTest : public testing::Test {
 protected:
  OptimizerTest()
      : device_(cpu::open_cpu_device({.threads = 1})),
        store_(*device_),
        quarter_(*device_, ParameterStore::metric_slot_count) {
    device_->write(std::vector<float>{0.25F}, quarter_.at(step_learning_rate));
    add("conv.weight", {3, 5, 3, 3}, ParameterKind::conv_weight, ParameterRole::weight);
    add("bn.weight", {3}, ParameterKind::channel_vector, ParameterRole::norm_scale);
    add("bn.bias", {3}, ParameterKind::channel_vector, ParameterRole::norm_shift);
    store_.add_statistic("bn.running_mean", 3, 0.0F);
    store_.add_statistic("bn.running_var", 3, 1.0F);
    add("fc.weight", {4, 3}, ParameterKind::linear_weight, ParameterRole::weight);
    add("fc.bias", {4}, ParameterKind::channel_vector, ParameterRole::bias);
    store_.allocate(device_->make_persistent(store_.gradient_buffer_count(), DType::f32));
    for (const Parameter& parameter : store_.parameters()) {
      const std::vector<float> ones(static_cast<std::size_t>(parameter.count()), 1.0F);
      const std::vector<float> twos(static_cast<std::size_t>(parameter.count()), 2.0F);
      device_->store(parameter.kind, parameter.dims, ones, parameter.gradient);
      device_->store(parameter.kind, parameter.dims, twos, parameter.value);
    }
  }

  void add(const char* name, std::vector<std::int64_t> dims, ParameterKind kind, ParameterRole role) {
    store_.add(name, std::move(dims), kind, role, {Initial::Kind::constant, 0.0F});
  }
  std::map<std::string, std::vector<float>> values() const {
    std::map<std::string, std::vector<float>> values;
    for (const ParameterStore::Entry& entry : store_.entries()) values[entry.name] = entry.values;
    return values;
  }

  std::unique_ptr<Device> device_;
  ParameterStore store_;
  StepRecord quarter_;  // a learning rate of 1/4
};

TEST_F(OptimizerTest, sgd_decays_every_parameter_by_default) {
  make_optimizer(store_, {.weight_decay = 0.5F})->step(quarter_);
  // 2 - 0.25 * (1 + 0.5 * 2)
  auto after = values();
  EXPECT_EQ(after["conv.weight"], std::vector<float>(135, 1.5F));
  EXPECT_EQ(after["bn.weight"], std::vector<float>(3, 1.5F));
  EXPECT_EQ(after["bn.bias"], std::vector<float>(3, 1.5F));
  EXPECT_EQ(after["fc.weight"], std::vector<float>(12, 1.5F));
  EXPECT_EQ(after["fc.bias"], std::vector<float>(4, 1.5F));
}

TEST_F(OptimizerTest, sgd_leaves_norms_and_biases_undecayed_by_option) {
  make_optimizer(store_, {.weight_decay = 0.5F, .decay_scope = DecayScope::weights_only})->step(quarter_);
  auto after = values();
  EXPECT_EQ(after["conv.weight"], std::vector<float>(135, 1.5F));
  EXPECT_EQ(after["bn.weight"], std::vector<float>(3, 1.75F));
  EXPECT_EQ(after["bn.bias"], std::vector<float>(3, 1.75F));
  EXPECT_EQ(after["fc.weight"], std::vector<float>(12, 1.5F));
  EXPECT_EQ(after["fc.bias"], std::vector<float>(4, 1.75F));
}

TEST_F(OptimizerTest, keeps_momentum_from_step_to_step) {
  const std::unique_ptr<Optimizer> sgd = make_optimizer(store_, {.momentum = 0.5F, .weight_decay = 0});
  sgd->step(quarter_);
  sgd->step(quarter_);
  // The velocity is 1, then 1.5.
  EXPECT_EQ(values()["fc.weight"], std::vector<float>(12, 2.0F - 0.25F - 0.375F));
}

TEST_F(OptimizerTest, looks_ahead_in_nesterovs_form) {
  make_optimizer(store_, {.momentum = 0.5F, .momentum_kind = Momentum::nesterov, .weight_decay = 0})->step(quarter_);
  // The gradient itself, and half of the velocity that it made.
  EXPECT_EQ(values()["fc.weight"], std::vector<float>(12, 2.0F - 0.25F - 0.125F));
}

// With trust 1/4 the rate of weights is |2| / 4 / (|1| + 0.5 * |2|) = 1/4 of the rate; elsewhere it is the rate.
TEST_F(OptimizerTest, lars_neither_adapts_nor_decays_norms_and_biases) {
  make_optimizer(store_, {.kind = OptimizerKind::lars, .weight_decay = 0.5F, .trust_coefficient = 0.25F})
      ->step(quarter_);
  auto after = values();
  // 2 - 0.25 * 0.25 * (1 + 0.5 * 2)
  EXPECT_EQ(after["conv.weight"], std::vector<float>(135, 1.875F));
  EXPECT_EQ(after["fc.weight"], std::vector<float>(12, 1.875F));
  for (const char* name : {"bn.weight", "bn.bias", "fc.bias"}) {
    for (const float value : after[name]) EXPECT_EQ(value, 1.75F) << name;
  }
}

TEST_F(OptimizerTest, adamw_leaves_norms_and_biases_undecayed_by_option) {
  quarter_.set_applied_steps(1);
  make_optimizer(store_, {.kind = OptimizerKind::adamw, .weight_decay = 0.5F, .decay_scope = DecayScope::weights_only})
      ->step(quarter_);
  auto after = values();
  EXPECT_NEAR(after["conv.weight"][0], 0.875F * 2 - 0.25F, 1e-6F);
  EXPECT_NEAR(after["bn.weight"][0], 2 - 0.25F, 1e-6F);
  EXPECT_NEAR(after["fc.bias"][0], 2 - 0.25F, 1e-6F);
}

TEST_F(OptimizerTest, scales_the_rates_of_parameters_by_their_names) {
  quarter_.set_applied_steps(1);
  const std::vector<RateScale> scales = {{"*.weight", 2}, {"fc.weight", 0.5F}, {"conv.*", 0}};
  make_optimizer(store_, {.momentum = 0, .weight_decay = 0.5F, .rate_scales = scales})->step(quarter_);
  auto after = values();
  EXPECT_EQ(after["conv.weight"], std::vector<float>(135, 2.0F));
  EXPECT_EQ(after["bn.weight"], std::vector<float>(3, 2 - 2 * 0.25F * 2));
  EXPECT_EQ(after["bn.bias"], std::vector<float>(3, 2 - 0.25F * 2));
  EXPECT_EQ(after["fc.weight"], std::vector<float>(12, 2 - 0.5F * 0.25F * 2));
  EXPECT_EQ(after["fc.bias"], std::vector<float>(4, 2 - 0.25F * 2));
}

// As with the rate itself, so a decoupled decay scales too.
TEST_F(OptimizerTest, every_optimizer_scales_its_rate) {
  for (const OptimizerKind kind : {OptimizerKind::sgd, OptimizerKind::lars, OptimizerKind::adamw}) {
    const auto fc_after = [&](float rate, const std::vector<RateScale>& scales) {
      store_.assign(store_.entries());
      const std::vector<float> twos(12, 2.0F);
      const Parameter& fc = store_.parameters()[3];
      device_->store(fc.kind, fc.dims, twos, fc.value);
      quarter_.set_applied_steps(1);
      device_->write(std::vector<float>{rate}, quarter_.at(step_learning_rate));
      make_optimizer(store_, {.kind = kind, .weight_decay = 0.5F, .rate_scales = scales})->step(quarter_);
      return values()["fc.weight"];
    };
    EXPECT_EQ(fc_after(0.25F, {{"fc.weight", 0.5F}}), fc_after(0.125F, {})) << static_cast<int>(kind);
    EXPECT_EQ(fc_after(0.25F, {{"fc.weight", 0}}), std::vector<float>(12, 2.0F)) << static_cast<int>(kind);
  }
}

TEST_F(OptimizerTest, a_pattern_that_matches_no_parameter_is_refused) {
  expect_error(Failure::usage, {"'layer9.*'", "--lr-scale", "conv.weight"}, [&] {
    make_optimizer(store_, {.rate_scales = {{"fc.*", 2}, {"layer9.*", 2}}});
  });
}

TEST_F(OptimizerTest, rates_of_zero_for_all_parameters_are_refused) {
  expect_error(Failure::usage, {"--lr-scale", "'fc.bias=1'"}, [&] {
    make_optimizer(store_, {.rate_scales = {{"*", 0}}});
  });
}

TEST_F(OptimizerTest, leaves_padding_zero) {
  quarter_.set_applied_steps(1);
  make_optimizer(store_, {.momentum_kind = Momentum::nesterov, .weight_decay = 0.5F})->step(quarter_);
  make_optimizer(store_, {.kind = OptimizerKind::lars,
                          .momentum_kind = Momentum::nesterov,
                          .weight_decay = 0.5F,
                          .trust_coefficient = 0.1F})
      ->step(quarter_);
  make_optimizer(store_, {.kind = OptimizerKind::adamw})->step(quarter_);
  const float* const first = store_.values().as<float>();
  const std::int64_t others = std::count_if(first, first + store_.gradient_count(), [](float v) { return v != 0.0F; });
  EXPECT_EQ(others, store_.parameter_count());
}

TEST_F(OptimizerTest, a_step_that_was_not_applied_changes_nothing) {
  const std::unique_ptr<Optimizer> sgd = make_optimizer(store_, {});
  sgd->step(quarter_);
  const auto before = values();
  device_->write(std::vector<float>{static_cast<float>(StepVerdict::overflowed)}, quarter_.at(step_verdict));
  sgd->step(quarter_);
  EXPECT_EQ(values(), before);
  device_->write(std::vector<float>{static_cast<float>(StepVerdict::applied)}, quarter_.at(step_verdict));
  sgd->step(quarter_);
  EXPECT_NE(values(), before);
}

}  // namespace lockstep::optimizer_test
