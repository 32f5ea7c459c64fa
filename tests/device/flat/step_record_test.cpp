#include "device/flat/step_record.hpp"

#include <cmath>
#include <limits>
#include <vector>

#include "device/cpu/cpu_device.hpp"
#include "support/device/flat_fixture.hpp"

namespace lockstep {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr std::int64_t metric_slot_count = 4;
constexpr MetricSlots places{1, 3};

class StepRecordTest : public FlatTest {
 protected:
  // A step with this loss and this many overflows.
  StepVerdict judge(float loss, float overflow) { return judge(record_, loss, overflow); }
  StepVerdict judge(const StepRecord& record, float loss, float overflow) {
    device_->write(std::vector<float>{7, loss, 8, overflow}, tail_);
    flat_.judge(tail_, places, record);
    return static_cast<StepVerdict>(static_cast<int>(read(record.at(step_verdict))[0]));
  }
  std::vector<float> values() { return read(record_.all()); }

  Tensor tail_ = device_->make_persistent(metric_slot_count, DType::f32);
  StepRecord record_{*device_, metric_slot_count};
};

TEST_P(StepRecordTest, keeps_the_tail_it_was_judged_by) {
  EXPECT_EQ(judge(2.5F, 0), StepVerdict::applied);
  const std::vector<float> all = values();
  EXPECT_EQ(std::vector<float>(all.begin() + step_metric_slots, all.end()), (std::vector<float>{7, 2.5F, 8, 0}));
}

TEST_P(StepRecordTest, without_loss_scaling_the_scale_stays_one) {
  for (int step = 0; step < 3000; ++step) EXPECT_EQ(judge(1, 0), StepVerdict::applied);
  EXPECT_EQ(record_.loss_scale().scale, 1);
  EXPECT_EQ(values()[step_gradient_scale], 1);
}

TEST_P(StepRecordTest, an_overflow_skips_the_step_and_halves_the_scale_of_the_next) {
  record_.scale_loss({1024, 5, 2});
  EXPECT_EQ(judge(1, 3), StepVerdict::overflowed);
  EXPECT_EQ(values()[step_gradient_scale], 1.0F / 1024);
  EXPECT_EQ(record_.loss_scale(), (LossScale{512, 0, 3}));
  EXPECT_EQ(judge(1, 0), StepVerdict::applied);
  EXPECT_EQ(values()[step_gradient_scale], 1.0F / 512);
  EXPECT_EQ(record_.loss_scale(), (LossScale{512, 1, 3}));
}

// Bias corrections count them: of a training that went on with the count of all steps, rates were another's.
TEST_P(StepRecordTest, counts_the_steps_that_were_applied) {
  record_.set_applied_steps(40);
  record_.scale_loss({1024, 0, 0});
  judge(1, 0);
  judge(1, 3);
  judge(1, 0);
  EXPECT_EQ(values()[step_applied_steps], 42);
  judge(infinity, 0);
  judge(1, 0);
  EXPECT_EQ(values()[step_applied_steps], 42);
}

TEST_P(StepRecordTest, once_a_loss_is_not_finite_no_later_step_is_applied) {
  for (const float loss : {infinity, -infinity, std::nanf("")}) {
    const StepRecord record(*device_, metric_slot_count);
    EXPECT_EQ(judge(record, loss, 0), StepVerdict::not_finite);
    EXPECT_EQ(judge(record, 1, 0), StepVerdict::not_finite);
  }
}

TEST_P(StepRecordTest, an_overflow_without_any_scale_ends_the_training) {
  record_.scale_loss({1, 0, 16});
  EXPECT_EQ(judge(1, 1), StepVerdict::overflowed_unscaled);
  EXPECT_EQ(judge(1, 0), StepVerdict::overflowed_unscaled);
}

TEST_P(StepRecordTest, every_device_judges_alike) {
  const std::unique_ptr<Device> cpu = cpu::open_cpu_device({.threads = 1});
  const Tensor metric_slots = cpu->make_persistent(metric_slot_count, DType::f32);
  StepRecord record(*cpu, metric_slot_count);
  record.scale_loss({65536, 1998, 0});
  record_.scale_loss({65536, 1998, 0});
  for (const auto& [loss, overflow] : std::vector<std::pair<float, float>>{{1, 0}, {2, 0}, {3, 1}, {infinity, 0}}) {
    judge(loss, overflow);
    cpu->write(std::vector<float>{7, loss, 8, overflow}, metric_slots);
    cpu->flat().judge(metric_slots, places, record);
    std::vector<float> expected(static_cast<std::size_t>(record.count()));
    cpu->read(record.all(), expected);
    EXPECT_EQ(values(), expected) << loss;
  }
}

INSTANTIATE_TEST_SUITE_P(, StepRecordTest, testing::ValuesIn(flat_devices()), flat_test_name);

}  // namespace
}  // namespace lockstep
