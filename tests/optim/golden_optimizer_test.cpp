// Ten steps of each optimizer against PyTorch's, and LARS against its formula, in float64: tests/golden/optimizers.h5.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "models/counter_values.hpp"
#include "models/golden_file.hpp"
#include "optim/optimizer.hpp"
#include "support/device/devices.hpp"

namespace lockstep::test {
namespace {

constexpr std::uint64_t gradient_stream = 2000;  // as in make_golden.py

class GoldenOptimizerTest : public ::testing::TestWithParam<TestDevice> {
 protected:
  GoldenOptimizerTest() {
    add("conv.weight", {6, 5, 3, 3}, ParameterKind::conv_weight, ParameterRole::weight);
    add("bn.weight", {6}, ParameterKind::channel_vector, ParameterRole::norm_scale);
    add("bn.bias", {6}, ParameterKind::channel_vector, ParameterRole::norm_shift);
    add("fc.weight", {7, 6}, ParameterKind::linear_weight, ParameterRole::weight);
    add("fc.bias", {7}, ParameterKind::channel_vector, ParameterRole::bias);
    store_.allocate(device_->make_persistent(store_.gradient_buffer_count(), DType::f32));
    begin();
  }

  void begin() {
    store_.assign_to(store_.values(), counter_entries(0, 1));
    record_.set_applied_steps(0);
  }

  void add(const char* name, std::vector<std::int64_t> dims, ParameterKind kind, ParameterRole role) {
    store_.add(name, std::move(dims), kind, role, {Initial::Kind::constant, 0.0F});
  }

  std::vector<ParameterStore::Entry> counter_entries(std::uint64_t stream, float size) {
    std::vector<ParameterStore::Entry> entries = store_.entries();
    for (ParameterStore::Entry& entry : entries) {
      entry.values = counter_uniform(stream++, std::ssize(entry.values));
      for (float& value : entry.values) value *= size;
    }
    return entries;
  }

  float number(const char* name) const { return static_cast<float>(golden_.attribute(name)); }
  OptimizerOptions options(OptimizerKind kind) const {
    return {.kind = kind,
            .momentum = number("momentum"),
            .weight_decay = number("weight_decay"),
            .trust_coefficient = number("trust"),
            .beta1 = number("beta1"),
            .beta2 = number("beta2"),
            .epsilon = number("epsilon")};
  }

  void expect_golden(const std::string& group, Optimizer& optimizer) {
    const int steps = static_cast<int>(golden_.attribute("steps"));
    for (int step = 0; step < steps; ++step) {
      store_.assign_to(store_.gradients(), counter_entries(gradient_stream + 100 * static_cast<std::uint64_t>(step),
                                                           0.25F * static_cast<float>(step + 1)));
      const double rate = golden_.attribute("learning_rate") * (step + 1) / steps;
      device_->write(std::vector<float>{static_cast<float>(rate)}, record_.at(step_learning_rate));
      device_->flat().judge(store_.metric_slots(), {ParameterStore::loss_slot, ParameterStore::overflow_slot}, record_);
      optimizer.step(record_);
    }
    for (const ParameterStore::Entry& entry : store_.entries()) {
      const std::vector<double> expected = golden_.values(group + "/" + entry.name);
      ASSERT_EQ(entry.values.size(), expected.size());
      for (std::size_t i = 0; i < expected.size(); ++i) {
        ASSERT_NEAR(entry.values[i], expected[i], 3e-6) << entry.name << " " << i;
      }
    }
  }

  static std::string golden_folder() {
    const char* const folder = std::getenv("LOCKSTEP_GOLDEN_DIR");  // where tests/gpu.sh has them
    return folder != nullptr ? folder : LOCKSTEP_GOLDEN_DIR;
  }

  std::shared_ptr<Device> device_ = GetParam().open({.threads = 2});
  GoldenFile golden_{golden_folder() + "/optimizers.h5"};
  ParameterStore store_{*device_};
  StepRecord record_{*device_, ParameterStore::metric_slot_count};
};

TEST_P(GoldenOptimizerTest, adamw_is_pytorchs) {
  expect_golden("adamw", *make_optimizer(store_, options(OptimizerKind::adamw)));
}

TEST_P(GoldenOptimizerTest, lars_is_its_formula) {
  expect_golden("lars", *make_optimizer(store_, options(OptimizerKind::lars)));
}

TEST_P(GoldenOptimizerTest, clipped_gradients_are_pytorchs) {
  OptimizerOptions clipping = options(OptimizerKind::sgd);
  clipping.clip.norm = number("clip_norm");
  expect_golden("clipped", *make_optimizer(store_, clipping));
}

TEST_P(GoldenOptimizerTest, gradients_clipped_by_value_are_pytorchs) {
  for (const auto& [kind, group] : {std::pair(OptimizerKind::sgd, "sgd_value"),
                                    {OptimizerKind::adamw, "adamw_value"},
                                    {OptimizerKind::lars, "lars_value"}}) {
    SCOPED_TRACE(group);
    begin();
    OptimizerOptions clipping = options(kind);
    clipping.clip.value = number("clip_value");
    expect_golden(group, *make_optimizer(store_, clipping));
  }
}

TEST_P(GoldenOptimizerTest, gradients_clipped_by_value_and_then_by_norm_are_pytorchs) {
  OptimizerOptions clipping = options(OptimizerKind::sgd);
  clipping.clip = {number("clip_norm"), number("clip_value")};
  expect_golden("value_norm", *make_optimizer(store_, clipping));
}

INSTANTIATE_TEST_SUITE_P(, GoldenOptimizerTest, ::testing::ValuesIn(test_devices()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace lockstep::test
