// Three steps of Muon against those of airbench94_muon.py in float64 (its class Muon without the rounding to bf16, and
// torch.optim.SGD for other parameters), on wide, tall and padded matrices.
#include "optim/muon.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "models/counter_values.hpp"
#include "optim/optimizer.hpp"
#include "support/device/devices.hpp"
#include "support/messages.hpp"

namespace lockstep::muon_test {

using test::counter_uniform;

// The norm, and five elements at even distances.
using Probes = std::map<std::string, std::array<double, 6>>;

const Probes nesterov_3 = {
    {"fc.bias", {2.4033236, 1.0422777, -0.4739305, 1.2274720, -1.0469000, -0.7386828}},
    {"fc.weight", {4.6335133, -0.8849685, -0.2495114, -0.4887626, 0.5568527, -1.3078983}},
    {"first.weight", {6.4055807, 0.4577407, -0.3870002, 0.7644328, -0.4054906, 0.7848520}},
    {"frozen.weight", {8.8128764, 0.5165383, 0.9280703, -0.6670450, 0.1189246, -0.6948752}},
    {"tall.weight", {6.3806316, -0.6115773, -0.0442885, 0.4782187, 0.5847431, 0.4192405}},
    {"wide.bias", {1.9524315, 0.0565351, 1.3146414, 0.5814345, 0.1752813, -0.6864286}},
    {"wide.weight", {2.6209945, -0.1031381, 0.1848626, -0.1180677, -0.1309011, -0.2189538}},
};
const Probes classic_5 = {
    {"fc.bias", {2.1899876, 0.9992853, -0.3803314, 1.1056055, -0.9112715, -0.6480017}},
    {"fc.weight", {3.8443072, -0.6150861, -0.3164278, -0.2963404, 0.3934719, -1.1185112}},
    {"first.weight", {6.1200719, 0.4105295, -0.3068105, 0.6661812, -0.4246633, 0.7446070}},
    {"frozen.weight", {8.8128764, 0.5165383, 0.9280703, -0.6670450, 0.1189246, -0.6948752}},
    {"tall.weight", {6.4211459, -0.6457314, -0.0140899, 0.4925213, 0.5553994, 0.4276636}},
    {"wide.bias", {1.7354914, 0.0867743, 1.1667790, 0.5322461, 0.0006358, -0.6716392}},
    {"wide.weight", {2.7438769, -0.1045890, 0.2317396, -0.2133159, -0.0830200, -0.2405585}},
};

Probes probes_of(const ParameterStore& store) {
  Probes probes;
  for (const ParameterStore::Entry& entry : store.entries()) {
    std::array<double, 6>& probe = probes[entry.name];
    for (const float value : entry.values) probe[0] += static_cast<double>(value) * static_cast<double>(value);
    probe[0] = std::sqrt(probe[0]);
    for (std::size_t i = 0; i < 5; ++i)
      probe[i + 1] = static_cast<double>(entry.values[i * (entry.values.size() - 1) / 4]);
  }
  return probes;
}

void expect_near(const Probes& actual, const Probes& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (const auto& [name, values] : expected) {
    for (std::size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(actual.at(name)[i], values[i], 3e-6) << name << i;
  }
}

class MuonTest : public testing::TestWithParam<TestDevice> {
 protected:
  MuonTest() : device_(GetParam().open({.threads = 2})) {
    add("first.weight", {4, 3, 3, 3}, ParameterKind::conv_weight, ParameterRole::weight);
    add("wide.weight", {6, 4, 3, 3}, ParameterKind::conv_weight, ParameterRole::weight);
    add("wide.bias", {6}, ParameterKind::channel_vector, ParameterRole::bias);
    add("tall.weight", {40, 6, 1, 1}, ParameterKind::conv_weight, ParameterRole::weight);
    add("frozen.weight", {6, 40, 1, 1}, ParameterKind::conv_weight, ParameterRole::weight);
    add("fc.weight", {7, 6}, ParameterKind::linear_weight, ParameterRole::weight);
    add("fc.bias", {7}, ParameterKind::channel_vector, ParameterRole::bias);
    store_.allocate(device_->make_persistent(store_.gradient_buffer_count(), DType::f32));
    store_.assign_to(store_.values(), counter_entries(0, 1));
  }

  void add(const char* name, std::vector<std::int64_t> dims, ParameterKind kind, ParameterRole role) {
    store_.add(name, std::move(dims), kind, role, {Initial::Kind::constant, 0.0F});
  }

  std::vector<ParameterStore::Entry> counter_entries(std::uint64_t stream, float size) const {
    std::vector<ParameterStore::Entry> entries = store_.entries();
    for (ParameterStore::Entry& entry : entries) {
      entry.values = counter_uniform(stream++, std::ssize(entry.values));
      for (float& value : entry.values) value *= size;
    }
    return entries;
  }

  static OptimizerOptions options() {
    return {.kind = OptimizerKind::muon,
            .momentum = 0.85F,
            .momentum_kind = Momentum::nesterov,
            .weight_decay = 0.02F,
            .rate_scales = {{"fc.weight", 2}, {"frozen.*", 0}}};
  }

  // Steps [first, last) on gradients that are multiplied by `scale`, as loss scaling does.
  void train(Optimizer& optimizer, int first, int last, float scale = 1) {
    device_->write(std::vector<float>{1 / scale}, record_.at(step_gradient_scale));
    for (int step = first; step < last; ++step) {
      const auto growth = static_cast<float>(step + 1);
      store_.assign_to(store_.gradients(),
                       counter_entries(2000 + 100 * static_cast<std::uint64_t>(step), 0.25F * growth * scale));
      device_->write(std::vector<float>{0.1F * growth}, record_.at(step_learning_rate));
      optimizer.step(record_);
    }
    device_->synchronize();
  }

  void give_verdict(StepVerdict verdict) {
    device_->write(std::vector<float>{static_cast<float>(verdict)}, record_.at(step_verdict));
  }

  std::shared_ptr<Device> device_;
  ParameterStore store_{*device_};
  StepRecord record_{*device_, ParameterStore::metric_slot_count};
};

TEST_P(MuonTest, three_steps_are_those_of_its_source) {
  train(*make_optimizer(store_, options()), 0, 3);
  expect_near(probes_of(store_), nesterov_3);
}

TEST_P(MuonTest, momentum_and_iterations_are_options) {
  OptimizerOptions classic = options();
  classic.momentum_kind = Momentum::classic;
  classic.muon_momentum = 0.95F;
  classic.ns_steps = 5;
  train(*make_optimizer(store_, classic), 0, 3);
  expect_near(probes_of(store_), classic_5);
}

TEST_P(MuonTest, scaled_losses_make_the_same_steps) {
  train(*make_optimizer(store_, options()), 0, 3, 1024);
  expect_near(probes_of(store_), nesterov_3);
}

// All singular values approach 1; the source says about 0.5 to 1.5.
TEST_P(MuonTest, a_step_of_one_matrix_has_the_norm_of_its_rank) {
  const std::unique_ptr<Optimizer> muon = make_optimizer(store_, options());
  train(*muon, 0, 1);
  for (const ParameterStore::Entry& entry : store_.entries_of(store_.gradients())) {
    if (entry.name != "wide.weight" && entry.name != "tall.weight") continue;
    double square = 0;
    for (const float value : entry.values) square += static_cast<double>(value) * static_cast<double>(value);
    EXPECT_NEAR(std::sqrt(square / 6), 1, 0.15) << entry.name;
  }
}

TEST_P(MuonTest, a_step_that_was_not_applied_changes_neither_weights_nor_state) {
  const std::unique_ptr<Optimizer> muon = make_optimizer(store_, options());
  train(*muon, 0, 1);
  const std::string weights = store_.weights_hash();
  const std::string state = weights_hash(store_.entries_of(muon->state().front().values));
  give_verdict(StepVerdict::overflowed);
  train(*muon, 1, 2, INFINITY);
  EXPECT_EQ(store_.weights_hash(), weights);
  EXPECT_EQ(weights_hash(store_.entries_of(muon->state().front().values)), state);
  give_verdict(StepVerdict::applied);
  train(*muon, 1, 3);
  expect_near(probes_of(store_), nesterov_3);
}

TEST_P(MuonTest, goes_on_from_its_state_with_the_same_bits) {
  const std::unique_ptr<Optimizer> muon = make_optimizer(store_, options());
  train(*muon, 0, 2);
  const OptimizerState state = state_of(store_, *muon);
  EXPECT_EQ(state.begin()->first, "muon_velocity");
  const std::vector<ParameterStore::Entry> weights = store_.entries();
  train(*muon, 2, 3);
  const std::string whole = store_.weights_hash();

  const std::unique_ptr<Optimizer> later = make_optimizer(store_, options());
  store_.assign(weights);
  assign_state(store_, *later, state);
  train(*later, 2, 3);
  EXPECT_EQ(store_.weights_hash(), whole);
}

TEST_P(MuonTest, a_gradient_of_zeros_moves_no_matrix_and_padding_stays_zero) {
  const std::unique_ptr<Optimizer> muon = make_optimizer(store_, options());
  train(*muon, 0, 1);
  const auto others = [&] {
    std::vector<float> values(static_cast<std::size_t>(store_.gradient_count()));
    device_->read(store_.values(), values);
    return std::count_if(values.begin(), values.end(), [](float value) { return value != 0; });
  };
  EXPECT_EQ(others(), store_.parameter_count());
  OptimizerOptions still = options();
  still.muon_momentum = 0;
  const std::unique_ptr<Optimizer> fresh = make_optimizer(store_, still);
  store_.assign_to(store_.gradients(), counter_entries(0, 0));
  fresh->step(record_);
  const Probes after = probes_of(store_);
  EXPECT_NEAR(after.at("wide.weight")[0], std::sqrt(6.0), 1e-5);
  EXPECT_NEAR(after.at("tall.weight")[0], std::sqrt(40.0), 1e-5);
  EXPECT_EQ(others(), store_.parameter_count());
}

INSTANTIATE_TEST_SUITE_P(, MuonTest, testing::ValuesIn(test_devices()),
                         [](const auto& test) { return test.param.name; });

TEST(MuonWeightsTest, a_network_without_hidden_convolutions_that_learn_is_refused) {
  const std::unique_ptr<Device> device = cpu::open_cpu_device({.threads = 1});
  ParameterStore store(*device);
  for (const char* name : {"conv1.weight", "conv2.weight", "conv3.weight"}) {
    store.add(name, {8, 8, 3, 3}, ParameterKind::conv_weight, ParameterRole::weight, {});
  }
  store.allocate(device->make_persistent(store.gradient_buffer_count(), DType::f32));
  const std::vector<const Parameter*> weights = muon_weights(store, {.kind = OptimizerKind::muon});
  ASSERT_EQ(weights.size(), 1U);
  EXPECT_EQ(weights.front()->name, "conv2.weight");
  expect_error(Failure::usage, {"--optimizer muon", "--optimizer sgd"}, [&] {
    make_optimizer(store, {.kind = OptimizerKind::muon, .rate_scales = {{"conv2.*", 0}}});
  });
}

// Enough elements that several threads share every loop.
TEST(MuonThreadsTest, bits_do_not_depend_on_threads) {
  const auto hash = [](int threads) {
    const std::unique_ptr<Device> device = cpu::open_cpu_device({.threads = threads});
    ParameterStore store(*device);
    int index = 0;
    for (const auto& dims :
         {std::vector<std::int64_t>{16, 3, 3, 3}, {100, 40, 3, 3}, {200, 100, 1, 1}, {10, 200, 1, 1}}) {
      store.add(std::to_string(index++), dims, ParameterKind::conv_weight, ParameterRole::weight, {});
    }
    store.allocate(device->make_persistent(store.gradient_buffer_count(), DType::f32));
    const auto filled = [&](std::uint64_t stream) {
      std::vector<ParameterStore::Entry> entries = store.entries();
      for (auto& entry : entries) entry.values = counter_uniform(stream++, std::ssize(entry.values));
      return entries;
    };
    store.assign(filled(0));
    StepRecord record(*device, ParameterStore::metric_slot_count);
    device->write(std::vector<float>{0.1F}, record.at(step_learning_rate));
    const std::unique_ptr<Optimizer> muon =
        make_optimizer(store, {.kind = OptimizerKind::muon, .momentum_kind = Momentum::nesterov});
    for (int step = 0; step < 3; ++step) {
      store.assign_to(store.gradients(), filled(100 + static_cast<std::uint64_t>(step)));
      muon->step(record);
    }
    return store.weights_hash();
  };
  EXPECT_EQ(hash(1), hash(2));
  EXPECT_EQ(hash(1), hash(3));
}

}  // namespace lockstep::muon_test
