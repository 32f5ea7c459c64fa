#include "step/all_reduce.hpp"

#include <gtest/gtest.h>

#include <cassert>
#include <cmath>
#include <memory>
#include <ranges>
#include <span>
#include <utility>
#include <vector>

#include "device/cpu/cpu_device.hpp"
#include "step/model.hpp"

namespace lockstep::all_reduce_test {

// Writes down what it is asked.
class RecordingReducer final : public AllReducer {
 public:
  Tensor allocate(std::int64_t count, DType) override {
    values_.resize(static_cast<std::size_t>(count));
    return {reinterpret_cast<std::byte*>(values_.data()), count * 4, Shape{count}, DType::f32, Layout::plain};
  }
  void start_sum(const Tensor& values) override {
    const std::int64_t first = (values.data() - reinterpret_cast<std::byte*>(values_.data())) / 4;
    slices.push_back({first, first + values.shape()[0]});
  }
  void start_rounded_sum(const Tensor& values) override {
    start_sum(values);
    ++rounded;
  }
  SlicePart part_of(const Tensor& values, int) const override { return {0, values.shape()[0]}; }
  void start_reduce_scatter(const Tensor& values) override { start_sum(values); }
  void start_all_gather(const Tensor& values) override { start_sum(values); }
  void wait() override { ++waits; }
  bool needs_host() const override { return host_sums; }
  std::string description() const override { return "recording"; }

  struct Slice {
    std::int64_t first;
    std::int64_t end;
  };
  std::vector<Slice> slices;
  int waits = 0;
  std::size_t rounded = 0;  // slices
  bool host_sums = false;

 private:
  std::vector<float> values_;
};

class AllReduceTest : public testing::Test {
 protected:
  void SetUp() override { model_.store.allocate(reducer_.allocate(model_.store.gradient_buffer_count(), DType::f32)); }

  void report_part(AllReduce& exchange) {
    for (const Parameter& parameter : std::views::reverse(model_.store.parameters())) exchange.ready(parameter);
  }

  std::unique_ptr<Device> device_ = cpu::open_cpu_device({.threads = 1});
  Model model_{*device_, {"resnet20", {32, 32, 3}, 10}};
  std::unique_ptr<RecordingReducer> owned_ = std::make_unique<RecordingReducer>();
  RecordingReducer& reducer_ = *owned_;
};

TEST_F(AllReduceTest, buckets_cover_the_reduced_array_from_front_to_back) {
  AllReduce exchange(model_.store, std::move(owned_), 64 << 10);
  exchange.begin_micro_batch(0, 1);
  report_part(exchange);
  exchange.finish();
  ASSERT_GT(reducer_.slices.size(), 3U);
  ASSERT_EQ(reducer_.slices.size(), exchange.bucket_count());
  std::int64_t end = 0;
  for (const auto& slice : reducer_.slices) {
    EXPECT_EQ(slice.first, end);
    end = slice.end;
  }
  EXPECT_EQ(end, model_.store.gradient_buffer_count());
  EXPECT_EQ(reducer_.waits, 1);
}

TEST_F(AllReduceTest, the_last_bucket_is_small_and_carries_statistics_and_tail) {
  constexpr std::int64_t limit = 64 << 10;
  const AllReduce exchange(model_.store, std::move(owned_), limit);
  const std::int64_t last = exchange.bucket_bytes(exchange.bucket_count() - 1);
  EXPECT_LE(last, limit);
  EXPECT_GT(last, (model_.store.statistics_count() + ParameterStore::metric_slot_count) * 4);
}

TEST_F(AllReduceTest, every_bucket_but_the_last_may_be_rounded_on_its_way) {
  AllReduce exchange(model_.store, std::move(owned_), 64 << 10);
  exchange.begin_micro_batch(0, 1);
  report_part(exchange);
  EXPECT_EQ(reducer_.rounded, exchange.bucket_count() - 1);
}

TEST_F(AllReduceTest, where_the_host_sums_nothing_goes_before_backward_has_ended) {
  reducer_.host_sums = true;
  AllReduce exchange(model_.store, std::move(owned_), 64 << 10);
  exchange.begin_micro_batch(0, 1);
  report_part(exchange);
  EXPECT_TRUE(reducer_.slices.empty());
  exchange.finish();
  ASSERT_EQ(reducer_.slices.size(), exchange.bucket_count());
  EXPECT_EQ(reducer_.slices.front().first, 0);
  EXPECT_EQ(reducer_.slices.back().end, model_.store.gradient_buffer_count());
  EXPECT_EQ(reducer_.waits, 1);
}

TEST_F(AllReduceTest, a_bucket_goes_as_soon_as_its_last_gradient_is_ready) {
  AllReduce exchange(model_.store, std::move(owned_), 64 << 10);
  exchange.begin_micro_batch(0, 1);
  for (const Parameter& parameter : std::views::reverse(model_.store.parameters())) {
    exchange.ready(parameter);
    const std::int64_t reported = parameter.offset + parameter.stored;
    for (const auto& slice : reducer_.slices) {
      const bool last = slice.end == model_.store.gradient_buffer_count();
      EXPECT_TRUE(last || slice.end - 16 <= reported) << slice.end;
    }
  }
  EXPECT_EQ(reducer_.slices.size(), exchange.bucket_count());
}

TEST_F(AllReduceTest, only_the_last_part_reduces_and_only_the_first_overwrites) {
  AllReduce exchange(model_.store, std::move(owned_), 64 << 10);
  exchange.begin_micro_batch(0, 2);
  EXPECT_EQ(exchange.accumulate(), Accumulate::overwrite);
  report_part(exchange);
  EXPECT_TRUE(reducer_.slices.empty());
  exchange.begin_micro_batch(1, 2);
  EXPECT_EQ(exchange.accumulate(), Accumulate::add);
  report_part(exchange);
  EXPECT_EQ(reducer_.slices.size(), exchange.bucket_count());
}

TEST_F(AllReduceTest, a_bucket_larger_than_the_model_is_one_reduction) {
  const AllReduce exchange(model_.store, std::move(owned_), std::int64_t{64} << 20);
  // One for the small last layers, one for the rest would be two; the whole net fits the last bucket only under 1 MiB.
  EXPECT_EQ(exchange.bucket_count(), 2U);
}

TEST_F(AllReduceTest, counts_gradients_that_overflow_and_not_what_lies_behind_them) {
  const ParameterStore& store = model_.store;
  const auto overflow = [&] {
    float count = -1;
    device_->read(store.metric_slots(ParameterStore::overflow_slot), std::span(&count, 1));
    return count;
  };
  const std::vector<float> infinity{HUGE_VALF};
  AllReduce exchange(store, std::move(owned_), 64 << 10);
  exchange.count_overflows();
  device_->write(infinity, store.batch_statistics().slice(0, 1));
  device_->write(infinity, store.metric_slots(ParameterStore::loss_slot));
  exchange.begin_micro_batch(0, 1);
  report_part(exchange);
  EXPECT_EQ(overflow(), 0);
  device_->write(infinity, store.gradients().slice(0, 1));
  device_->write(infinity, store.gradients().slice(store.gradient_count() - 1, 1));
  exchange.begin_micro_batch(0, 1);
  report_part(exchange);
  EXPECT_EQ(overflow(), 2);
  exchange.begin_micro_batch(0, 1);
  report_part(exchange);
  EXPECT_EQ(overflow(), 2);  // anew each step
}

TEST_F(AllReduceTest, exact_sums_add_each_part_by_itself_and_count_all_that_they_cannot_hold) {
  const ParameterStore& store = model_.store;
  const std::int64_t count = store.gradient_buffer_count();
  const Tensor sums = device_->make_persistent(count, DType::i64);
  const FixedPoint form = fixed_point_for(2);
  const RecordingReducer& reducer = *owned_;
  AllReduce exchange(store, std::move(owned_), 64 << 10, ReproducibleSums{sums, form});
  exchange.count_overflows();  // which counts all that the sums cannot hold, not infinities alone
  std::vector<float> values(static_cast<std::size_t>(count), 0.25F);
  for (int micro_batch = 0; micro_batch < 2; ++micro_batch) {
    exchange.begin_micro_batch(micro_batch, 2);
    EXPECT_EQ(exchange.accumulate(), Accumulate::overwrite);
    values[7] = micro_batch == 0 ? form.limit : 1.0F;
    values[static_cast<std::size_t>(store.gradient_count())] = micro_batch == 0 ? 1.0F : std::nanf("");  // a statistic
    device_->write(values, store.gradient_buffer());
    report_part(exchange);
  }
  EXPECT_EQ(reducer.rounded, 0U) << "whole numbers are not rounded on their way";
  EXPECT_EQ(sums.as<std::int64_t>()[0], std::int64_t{1} << 39);
  EXPECT_EQ(sums.as<std::int64_t>()[7], std::int64_t{1} << 40);
  exchange.finish();
  std::vector<float> result(static_cast<std::size_t>(count));
  device_->read(store.gradient_buffer(), result);
  EXPECT_EQ(result[0], 0.5F);
  float overflow = 0;
  device_->read(store.metric_slots(ParameterStore::overflow_slot), std::span(&overflow, 1));
  EXPECT_EQ(overflow, 2);
}

using AllReduceDeathTest = AllReduceTest;

TEST_F(AllReduceDeathTest, a_gradient_reported_out_of_order_is_a_bug_of_ours) {
  bool checked = false;
  assert((checked = true));
  if (!checked) GTEST_SKIP() << "assertions are compiled out of this build";
  AllReduce exchange(model_.store, std::move(owned_), 64 << 10);
  exchange.begin_micro_batch(0, 1);
  EXPECT_DEATH(exchange.ready(model_.store.parameters().front()), "next_");
}

}  // namespace lockstep::all_reduce_test
