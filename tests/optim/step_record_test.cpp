#include "optim/step_record.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "device/cuda/launch/launch.hpp"
#include "optim/cuda_flat_passes.hpp"
#include "optim/flat_updates.hpp"

namespace lockstep {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr std::int64_t tail_count = 4;
constexpr TailPlaces places{1, 3};

class StepRecordTest : public testing::Test {
 protected:
  // A step with this loss and this many overflows.
  Verdict judge(float loss, float overflow) { return judge(record_, loss, overflow); }
  Verdict judge(const StepRecord& record, float loss, float overflow) {
    device_->write(std::vector<float>{7, loss, 8, overflow}, tail_);
    updates_->judge(tail_, places, record);
    return static_cast<Verdict>(static_cast<int>(*record.at(step_verdict).as<float>()));
  }
  std::vector<float> values() const {
    std::vector<float> values(static_cast<std::size_t>(record_.count()));
    device_->read(record_.all(), values);
    return values;
  }

  std::unique_ptr<Device> device_ = open_device({.name = "cpu", .threads = 1});
  std::unique_ptr<FlatUpdates> updates_ = make_flat_updates(*device_, {});
  Tensor tail_ = device_->make_lasting(tail_count, DType::f32);
  StepRecord record_{*device_, tail_count};
};

TEST_F(StepRecordTest, keeps_the_tail_it_was_judged_by) {
  EXPECT_EQ(judge(2.5F, 0), Verdict::applied);
  const std::vector<float> all = values();
  EXPECT_EQ(std::vector<float>(all.begin() + step_tail, all.end()), (std::vector<float>{7, 2.5F, 8, 0}));
}

TEST_F(StepRecordTest, without_loss_scaling_the_scale_stays_one) {
  for (int step = 0; step < 3000; ++step) EXPECT_EQ(judge(1, 0), Verdict::applied);
  EXPECT_EQ(record_.loss_scale().scale, 1);
  EXPECT_EQ(values()[step_gradient_scale], 1);
}

TEST_F(StepRecordTest, an_overflow_skips_the_step_and_halves_the_scale_of_the_next) {
  record_.scale_loss({1024, 5, 2});
  EXPECT_EQ(judge(1, 3), Verdict::overflowed);
  EXPECT_EQ(values()[step_gradient_scale], 1.0F / 1024);
  EXPECT_EQ(record_.loss_scale(), (LossScale{512, 0, 3}));
  EXPECT_EQ(judge(1, 0), Verdict::applied);
  EXPECT_EQ(values()[step_gradient_scale], 1.0F / 512);
  EXPECT_EQ(record_.loss_scale(), (LossScale{512, 1, 3}));
}

TEST_F(StepRecordTest, once_a_loss_is_not_finite_no_later_step_is_applied) {
  for (const float loss : {infinity, -infinity, std::nanf("")}) {
    const StepRecord record(*device_, tail_count);
    EXPECT_EQ(judge(record, loss, 0), Verdict::not_finite);
    EXPECT_EQ(judge(record, 1, 0), Verdict::not_finite);
  }
}

TEST_F(StepRecordTest, an_overflow_without_any_scale_ends_the_training) {
  record_.scale_loss({1, 0, 16});
  EXPECT_EQ(judge(1, 1), Verdict::overflowed_unscaled);
  EXPECT_EQ(judge(1, 0), Verdict::overflowed_unscaled);
}

TEST_F(StepRecordTest, a_gpu_judges_as_the_cpu_does) {
  record_.scale_loss({65536, 1998, 0});
  std::vector<float> gpu = values();
  for (const auto& [loss, overflow] : std::vector<std::pair<float, float>>{{1, 0}, {2, 0}, {3, 1}, {infinity, 0}}) {
    const std::vector<float> tail{7, loss, 8, overflow};
    judge(loss, overflow);
    cuda::HostLaunch()(1, cuda::JudgeStep{tail.data(), tail_count, places.loss, places.overflow, gpu.data()});
    EXPECT_EQ(gpu, values()) << loss;
  }
}

}  // namespace
}  // namespace lockstep
