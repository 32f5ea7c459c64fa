// The flat arrays of a model: order, names, what assign() accepts, and the hash.
#include "nn/parameter_store.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "base/error.hpp"
#include "device/flat/step_record.hpp"
#include "models/test_net.hpp"
#include "nn/initialize.hpp"
#include "support/messages.hpp"

namespace lockstep::test::parameter_store_test {

using Entry = ParameterStore::Entry;

// conv.weight [3, 2, 1, 1], conv.bias [3], norm.running_mean [3].
class ParameterStoreTest : public ::testing::Test {
 protected:
  ParameterStoreTest() : device_(open_test_device()), store_(*device_) {
    store_.add("conv.weight", {3, 2, 1, 1}, ParameterKind::conv_weight, ParameterRole::weight, uniform_fan_in(2));
    store_.add("conv.bias", {3}, ParameterKind::channel_vector, ParameterRole::bias, constant(0.5F));
    store_.add_statistic("norm.running_mean", 3, 2.0F);
    store_.allocate(device_->make_persistent(store_.gradient_buffer_count(), DType::f32));
  }

  static std::vector<Entry> entries() {
    return {{"conv.bias", {3}, {1, 2, 3}},
            {"conv.weight", {3, 2, 1, 1}, {10, 11, 12, 13, 14, 15}},
            {"norm.running_mean", {3}, {-1, -2, -3}}};
  }

  std::string refusal(const std::vector<Entry>& entries) {
    try {
      store_.assign(entries);
    } catch (const Error& error) {
      return error.failure() == Failure::bad_data ? error.what() : "wrong failure code";
    }
    return "accepted";
  }

  std::unique_ptr<Device> device_;
  ParameterStore store_;
};

TEST_F(ParameterStoreTest, gradients_lie_in_reverse_order_of_registration) {
  const Parameter& weight = store_.parameters()[0];
  const Parameter& bias = store_.parameters()[1];
  EXPECT_EQ(bias.offset, 0);
  EXPECT_GE(weight.offset, bias.offset + bias.stored);
  EXPECT_EQ(weight.offset % 16, 0);
  EXPECT_EQ(bias.gradient.data(), store_.gradients().data());
  EXPECT_EQ(weight.gradient.data(), store_.gradient_buffer().data() + weight.offset * 4);
  EXPECT_EQ(weight.value.data(), store_.values().data() + weight.offset * 4);
}

TEST_F(ParameterStoreTest, running_statistics_move_by_a_tenth_towards_the_batch) {
  initialize(store_, 1);
  const Statistic& mean = store_.statistics()[0];
  device_->write(std::vector<float>(static_cast<std::size_t>(mean.stored), 12.0F), mean.batch);
  store_.update_running_statistics(StepRecord(*device_, ParameterStore::metric_slot_count));
  const Entry running = store_.entries()[2];
  for (const float value : running.values) EXPECT_FLOAT_EQ(value, 0.9F * 2 + 0.1F * 12);
}

TEST_F(ParameterStoreTest, statistics_and_tail_lie_behind_the_gradients) {
  const Statistic& mean = store_.statistics()[0];
  EXPECT_EQ(mean.batch.data(), store_.gradient_buffer().data() + store_.gradient_count() * 4);
  EXPECT_EQ(store_.metric_slots(ParameterStore::loss_slot).data(),
            store_.gradient_buffer().data() + (store_.gradient_count() + store_.statistics_count()) * 4);
  EXPECT_EQ(store_.gradient_buffer_count(),
            store_.gradient_count() + store_.statistics_count() + ParameterStore::metric_slot_count);
}

TEST_F(ParameterStoreTest, parameters_start_at_zero_and_statistics_at_their_initial_value) {
  const std::vector<Entry> entries = store_.entries();
  EXPECT_EQ(entries[0].values, std::vector<float>(3, 0.0F));
  EXPECT_EQ(entries[1].values, std::vector<float>(6, 0.0F));
  EXPECT_EQ(entries[2].values, std::vector<float>(3, 2.0F));
}

TEST_F(ParameterStoreTest, assigned_values_come_back_in_name_order) {
  std::vector<Entry> shuffled = entries();
  std::swap(shuffled[0], shuffled[2]);
  store_.assign(shuffled);
  const std::vector<Entry> back = store_.entries();
  ASSERT_EQ(back.size(), 3U);
  for (std::size_t i = 0; i < back.size(); ++i) {
    EXPECT_EQ(back[i].name, entries()[i].name);
    EXPECT_EQ(back[i].dims, entries()[i].dims);
    EXPECT_EQ(back[i].values, entries()[i].values);
  }
  EXPECT_EQ(store_.parameter_count(), 9);
}

TEST_F(ParameterStoreTest, a_missing_entry_is_named) {
  std::vector<Entry> without = entries();
  without.erase(without.begin() + 1);
  expect_message(refusal(without), {"--model", "conv.weight"});
  without = entries();
  without.pop_back();
  expect_message(refusal(without), {"--model", "norm.running_mean"});
}

TEST_F(ParameterStoreTest, an_unknown_entry_is_named) {
  for (const char* name : {"aaa", "conv.zzz", "zzz"}) {
    std::vector<Entry> more = entries();
    more.push_back({name, {1}, {0}});
    expect_message(refusal(more), {"--model"});
  }
}

TEST_F(ParameterStoreTest, all_that_does_not_fit_is_told_at_once_by_the_first_few_and_how_many_more) {
  std::vector<Entry> other = entries();
  other[0].name = "conv.bise";
  other[2].dims = {4};
  for (const char* name : {"x1", "x2", "x3", "x4"}) other.push_back({name, {1}, {0}});
  expect_message(refusal(other), {"--model", "conv.bias", "conv.bise"});
}

TEST_F(ParameterStoreTest, an_entry_given_twice_is_named) {
  std::vector<Entry> twice = entries();
  twice.push_back(twice[0]);
  expect_message(refusal(twice), {"conv.bias"});
}

TEST_F(ParameterStoreTest, an_entry_of_another_shape_is_named_and_nothing_is_changed) {
  std::vector<Entry> other = entries();
  other[2].dims = {4};
  const std::string before = store_.weights_hash();
  expect_message(refusal(other), {"--model", "norm.running_mean"});
  EXPECT_EQ(store_.weights_hash(), before);
}

TEST_F(ParameterStoreTest, an_entry_with_too_few_values_is_named) {
  std::vector<Entry> other = entries();
  other[1].values.pop_back();
  expect_message(refusal(other), {"conv.weight"});
}

TEST_F(ParameterStoreTest, the_hash_is_that_of_names_dims_and_values) {
  store_.assign(entries());
  EXPECT_EQ(store_.weights_hash(), "0c52fb7860e1d8d0");
  std::vector<Entry> changed = entries();
  changed[2].values[2] = -3.0000002F;
  store_.assign(changed);
  EXPECT_NE(store_.weights_hash(), "0c52fb7860e1d8d0");
}

TEST_F(ParameterStoreTest, an_optimizers_array_has_a_value_for_each_of_every_parameter_and_none_for_statistics) {
  const Tensor velocity = device_->make_persistent(store_.gradient_count(), DType::f32);
  std::vector<Entry> given = entries();
  given.pop_back();
  store_.assign_to(velocity, given);
  const std::vector<Entry> read = store_.entries_of(velocity);
  ASSERT_EQ(read.size(), 2U);
  EXPECT_EQ(read[0].name, "conv.bias");
  EXPECT_EQ(read[0].values, given[0].values);
  EXPECT_EQ(read[1].dims, given[1].dims);
  EXPECT_EQ(read[1].values, given[1].values);
  EXPECT_EQ(store_.entries()[0].values, (std::vector<float>{0, 0, 0}));  // the parameters themselves stay
  EXPECT_THROW(store_.assign_to(velocity, entries()), Error);
}

TEST_F(ParameterStoreTest, statistics_move_by_a_tenth_of_the_batch_where_a_step_is_applied) {
  const std::int64_t dims[] = {3};
  device_->store(ParameterKind::channel_vector, dims, std::vector<float>{3, 3, 3}, store_.statistics()[0].batch);
  const StepRecord record(*device_, ParameterStore::metric_slot_count);
  const auto means = [&] { return store_.entries()[2].values; };
  store_.update_running_statistics(record);
  const std::vector<float> moved = means();
  for (const float mean : moved) EXPECT_FLOAT_EQ(mean, 2.1F);
  device_->write(std::vector<float>{static_cast<float>(StepVerdict::overflowed)}, record.at(step_verdict));
  store_.update_running_statistics(record);
  EXPECT_EQ(means(), moved);
}

}  // namespace lockstep::test::parameter_store_test
