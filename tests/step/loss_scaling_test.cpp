// Loss scaling in whole training steps. The CPU, which has no fp16, stands in for a device that has.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "backend/cpu_backend.hpp"
#include "step/noise.hpp"
#include "step/whole_step.hpp"
#include "support/device/hosted_cuda_device.hpp"
#include "support/messages.hpp"

namespace lockstep::loss_scaling_test {

constexpr std::int64_t micro_batch_size = 4;
constexpr int micro_batches = 2;
constexpr SampleShape shape{32, 32, 3};

// The same pictures for every micro-batch. Between the micro-batches of a step it can put an infinity among this rank's
// gradients.
class PoisoningLoader final : public Loader {
 public:
  explicit PoisoningLoader(const ParameterStore& store)
      : store_(store), batch_(noise_batch(store.device(), shape, micro_batch_size, 10)) {}

  const Batch& next() override {
    if (calls_++ % micro_batches == 1 && poisons) {
      store_.device().write(std::vector<float>{-HUGE_VALF}, store_.gradients().slice(0, 1));
    }
    return batch_;
  }
  double waited_ms() const override { return 0; }

  bool poisons = false;

 private:
  const ParameterStore& store_;
  Batch batch_;
  int calls_ = 0;
};

class LossScalingTest : public testing::Test {
 protected:
  LossScalingTest() { step_.choose_kernels({micro_batch_size}); }

  std::string hash() const { return step_.model().store.weights_hash(); }

  const Communicator world_{MPI_COMM_WORLD};
  const Session session_{world_, open_backend({.name = "cpu", .threads = 1})};
  const LoaderShare share_{micro_batch_size * micro_batches * world_.size(), micro_batches* world_.size(),
                           micro_batches* world_.rank(), micro_batches};
  WholeStep step_{session_, {"lenet", shape, 10}, share_, {"auto", 16 << 10}, OptimizerOptions{}, 0.0F, 3};
  PoisoningLoader loader_{step_.model().store};
};

TEST_F(LossScalingTest, without_half_precision_there_is_none) {
  EXPECT_FALSE(step_.own_sync->loss_scale().has_value());
}

TEST(HalfPrecisionTest, scales_the_loss_from_the_first_step_on) {
  const Communicator self(MPI_COMM_SELF);
  const Session session{self, std::make_unique<CpuBackend>(open_hosted_cuda_device({.precision = DType::f16}))};
  const LoaderShare share{micro_batch_size, 1, 0, 1};
  const WholeStep step(session, {"lenet", shape, 10}, share, {"auto", 16 << 10}, OptimizerOptions{}, 0.0F, 3);
  EXPECT_EQ(step.own_sync->loss_scale(), LossScale{});
}

TEST_F(LossScalingTest, changes_no_bit_of_what_is_learned) {
  WholeStep plain(session_, {"lenet", shape, 10}, share_, {"auto", 16 << 10}, OptimizerOptions{}, 0.0F, 3);
  step_.own_sync->scale_loss({});
  for (int index = 0; index < 3; ++index) {
    EXPECT_EQ(step_.run(loader_, index, 0.05).metrics.loss(), plain.run(loader_, index, 0.05).metrics.loss());
  }
  EXPECT_EQ(hash(), plain.model().store.weights_hash());
  EXPECT_EQ(step_.own_sync->loss_scale()->clean_steps, 3);
}

TEST_F(LossScalingTest, values_are_clipped_as_without_it) {
  const OptimizerOptions options{.clip = {.value = 1e-3F}};
  WholeStep scaled(session_, {"lenet", shape, 10}, share_, {"auto", 16 << 10}, options, 0.0F, 3);
  WholeStep plain(session_, {"lenet", shape, 10}, share_, {"auto", 16 << 10}, options, 0.0F, 3);
  scaled.own_sync->scale_loss({});
  for (int index = 0; index < 2; ++index) {
    step_.run(loader_, index, 0.05);
    scaled.run(loader_, index, 0.05);
    plain.run(loader_, index, 0.05);
  }
  EXPECT_EQ(scaled.model().store.weights_hash(), plain.model().store.weights_hash());
  EXPECT_NE(scaled.model().store.weights_hash(), hash()) << "the limit clips nothing";
}

TEST_F(LossScalingTest, every_rank_skips_the_step_in_which_one_rank_overflows) {
  step_.own_sync->scale_loss({});
  step_.run(loader_, 0, 0.05);
  const std::string before = hash();
  loader_.poisons = world_.rank() == world_.size() - 1;
  const StepResult skipped = step_.run(loader_, 1, 0.05);
  EXPECT_TRUE(skipped.skipped);
  EXPECT_TRUE(std::isfinite(skipped.metrics.loss()));
  EXPECT_EQ(skipped.loss_scale, 32768);
  EXPECT_EQ(hash(), before);
  EXPECT_EQ(step_.own_sync->loss_scale()->skipped_steps, 1);
  EXPECT_EQ(step_.own_sync->loss_scale()->scale, 32768.0F);

  loader_.poisons = false;
  EXPECT_FALSE(step_.run(loader_, 2, 0.05).skipped);
  EXPECT_NE(hash(), before);
  EXPECT_EQ(step_.own_sync->loss_scale()->skipped_steps, 1);
  EXPECT_EQ(step_.own_sync->loss_scale()->clean_steps, 1);
  for (const std::string& other : world_.all_gather(hash())) EXPECT_EQ(other, hash());
}

TEST_F(LossScalingTest, an_overflow_that_no_scale_can_mend_is_told_on_every_rank) {
  step_.own_sync->scale_loss({1.0F, 0, 0});
  const std::string before = hash();
  loader_.poisons = world_.rank() == 0;
  expect_message(step_.run(loader_, 7, 0.05).divergence, {"step 7", "0.05", "--lr"});
  EXPECT_EQ(hash(), before);
}

}  // namespace lockstep::loss_scaling_test
