#include "optim/ema.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "support/device/flat_fixture.hpp"

namespace lockstep {
namespace {

class EmaTest : public FlatTest {
 protected:
  EmaTest() {
    store_.add("fc.weight", {3, 2}, ParameterKind::linear_weight, ParameterRole::weight, {Initial::Kind::constant, 0});
    store_.add_statistic("bn.running_mean", 3, 0.0F);
    store_.allocate(device_->make_persistent(store_.gradient_buffer_count(), DType::f32));
    set(8, 4);
  }

  void set(float weight, float statistic) {
    store_.assign(std::vector<ParameterStore::Entry>{{"bn.running_mean", {3}, std::vector<float>(3, statistic)},
                                                     {"fc.weight", {3, 2}, std::vector<float>(6, weight)}});
  }
  // After so many applied steps.
  void follow(Ema& mean, std::int64_t steps, StepVerdict verdict = StepVerdict::applied) {
    StepRecord record(*device_, 1);
    record.set_applied_steps(steps);
    device_->write(std::vector<float>{static_cast<float>(verdict)}, record.at(step_verdict));
    mean.follow(record);
    device_->synchronize();
  }
  // Weight and statistic.
  static std::vector<float> both(const std::vector<ParameterStore::Entry>& entries) {
    return {entries[1].values.at(5), entries[0].values.at(2)};
  }

  static std::vector<float> both_of(const Ema& ema) {
    return collected([&](const auto& take) { ema.visit(take); });
  }
  static std::vector<float> both_of_weights(const Ema& ema) {
    return collected([&](const auto& take) { ema.visit_weights(take); });
  }
  template <typename Visit>
  static std::vector<float> collected(const Visit& visit) {
    std::vector<ParameterStore::Entry> entries;
    visit([&](const ParameterStore::Entry& entry) { entries.push_back(entry); });
    return both(entries);
  }

  ParameterStore store_{*device_};
};

TEST_P(EmaTest, begins_as_the_weights_and_follows_them_by_its_share) {
  Ema mean(store_, {0.25F, 1, 1});
  mean.begin();
  EXPECT_EQ(both_of(mean), (std::vector<float>{8, 4}));
  set(16, 8);
  follow(mean, 2);
  EXPECT_EQ(both_of(mean), (std::vector<float>{10, 5}));
  EXPECT_EQ(both(store_.entries()), (std::vector<float>{16, 8}));
}

TEST_P(EmaTest, is_the_weights_themselves_until_its_first_step_is_over) {
  Ema mean(store_, {0.25F, 2, 6});
  mean.begin();
  set(16, 8);
  follow(mean, 6);
  EXPECT_EQ(both_of(mean), (std::vector<float>{16, 8}));
}

TEST_P(EmaTest, waits_for_its_steps_and_passes_over_those_that_were_not_applied) {
  Ema mean(store_, {0.25F, 4, 4});
  mean.begin();
  set(16, 8);
  for (const std::int64_t step : {1, 2, 3, 5, 6, 7, 9}) follow(mean, step);
  follow(mean, 8, StepVerdict::overflowed);
  EXPECT_EQ(both_of(mean), (std::vector<float>{8, 4}));
  follow(mean, 8);
  EXPECT_EQ(both_of(mean), (std::vector<float>{10, 5}));
}

TEST_P(EmaTest, has_a_decay_that_grows_to_its_end) {
  Ema mean(store_, {.share = 0.25F, .every = 1, .copies_until = 1, .ramp_steps = 8, .ramp_power = 2});
  mean.begin();
  set(16, 8);
  follow(mean, 4);
  EXPECT_EQ(both_of(mean), (std::vector<float>{8 + 0.8125F * 8, 4 + 0.8125F * 4}));  // 1 - 0.75 * (4 / 8)^2
  for (const std::int64_t step : {8, 9}) {
    mean.begin();
    set(8, 4);
    follow(mean, step);
    EXPECT_EQ(both_of(mean), (std::vector<float>{14, 7}));
    set(16, 8);
  }
}

TEST_P(EmaTest, that_leads_replaces_the_weights_when_it_has_followed_them) {
  Ema mean(store_, {.share = 0.25F, .every = 2, .copies_until = 2, .leads = true});
  mean.begin();
  set(16, 8);
  follow(mean, 3);
  EXPECT_EQ(both(store_.entries()), (std::vector<float>{16, 8}));
  follow(mean, 4, StepVerdict::overflowed);
  EXPECT_EQ(both(store_.entries()), (std::vector<float>{16, 8}));
  follow(mean, 4);
  EXPECT_EQ(both_of(mean), (std::vector<float>{10, 5}));
  EXPECT_EQ(both(store_.entries()), (std::vector<float>{10, 5}));
}

TEST_P(EmaTest, changes_places_with_the_weights_and_back) {
  Ema mean(store_, {0.25F, 1, 1});
  mean.assign(std::vector<ParameterStore::Entry>{{"bn.running_mean", {3}, {1, 2, 3}},
                                                 {"fc.weight", {3, 2}, {1, 2, 3, 4, 5, 6}}});
  EXPECT_EQ(both(store_.entries()), (std::vector<float>{8, 4}));
  mean.exchange();
  EXPECT_EQ(both(store_.entries()), (std::vector<float>{6, 3}));
  // A checkpoint may be made meanwhile.
  EXPECT_EQ(both_of(mean), (std::vector<float>{6, 3}));
  EXPECT_EQ(both_of_weights(mean), (std::vector<float>{8, 4}));
  mean.exchange();
  EXPECT_EQ(both(store_.entries()), (std::vector<float>{8, 4}));
  EXPECT_EQ(both_of(mean), (std::vector<float>{6, 3}));
  EXPECT_EQ(both_of_weights(mean), (std::vector<float>{8, 4}));
}

// Two parts of a weight of 48 elements.
TEST_P(EmaTest, of_parts_follows_and_exchanges_only_these) {
  ParameterStore store(*device_);
  store.add("fc.bias", {48}, ParameterKind::channel_vector, ParameterRole::bias, {Initial::Kind::constant, 0});
  store.allocate(device_->make_persistent(store.gradient_buffer_count(), DType::f32));
  const auto set_all = [&](float value) {
    store.assign(std::vector<ParameterStore::Entry>{{"fc.bias", {48}, std::vector<float>(48, value)}});
  };
  set_all(8);
  Ema ema(store, {0.25F, 1, 1}, std::vector<FlatPart>{{0, 16}, {32, 16}});
  ema.begin();
  set_all(16);
  follow(ema, 2);
  EXPECT_EQ(ema.values().shape().count(), 32);
  ema.exchange();
  std::vector<float> expected(48, 10);
  std::fill_n(expected.begin() + 16, 16, 16.0F);
  EXPECT_EQ(store.entries()[0].values, expected);
  ema.exchange();
  EXPECT_EQ(store.entries()[0].values, std::vector<float>(48, 16));
}

INSTANTIATE_TEST_SUITE_P(, EmaTest, testing::ValuesIn(flat_devices()), flat_test_name);

}  // namespace
}  // namespace lockstep
