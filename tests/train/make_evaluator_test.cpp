// Kernels of programs that only evaluate: each of their runs measured all of them, and on each rank its own.
#include "train/evaluation/make_evaluator.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <utility>

#include "backend/cpu_backend.hpp"
#include "device/cpu/cpu_device.hpp"
#include "nn/initialize.hpp"
#include "runtime/plan_file.hpp"
#include "support/device/repeating_device.hpp"
#include "support/samples/small_data_set.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::make_evaluator_test {

constexpr std::int64_t samples = 321;  // of which each forward pass takes 21

// A network for which there is only memory for `most` samples.
class Confined final : public Network {
 public:
  Confined(std::unique_ptr<Network> inner, std::int64_t most) : inner_(std::move(inner)), most_(most) {}

  Tensor forward(const Tensor& x, Mode mode) override {
    require(x.shape()[0] <= most_, Failure::out_of_memory, "no memory");
    return inner_->forward(x, mode);
  }
  Tensor backward(const Tensor& d_logits, GradientSink& sink) override { return inner_->backward(d_logits, sink); }

 private:
  std::unique_ptr<Network> inner_;
  std::int64_t most_;
};

class MakeEvaluatorTest : public testing::Test {
 protected:
  MakeEvaluatorTest() {
    if (world_.rank() == 0) write_small_data_set(data_, {16, 16, 3}, samples, 300);
    world_.barrier();
  }
  ~MakeEvaluatorTest() override {
    world_.barrier();
    if (world_.rank() == 0) std::filesystem::remove_all(data_);
  }

  struct Outcome {
    std::int64_t batch;
    std::string plan;
    Evaluation result;
  };
  Outcome evaluate(std::int64_t most) {
    const Session session{world_,
                          std::make_unique<CpuBackend>(make_repeating_device(cpu::open_cpu_device({.threads = 1}))),
                          plans_.path()};
    Device& device = session.device();
    Model model(device, ModelOptions{"lenet", {16, 16, 3}, 10},
                [most](const ModelOptions& options, const LayerContext& context) -> std::unique_ptr<Network> {
                  return std::make_unique<Confined>(make_model(options, context), most);
                });
    model.store.allocate(device.make_persistent(model.store.gradient_buffer_count(), DType::f32));
    initialize(model.store, 5);
    const Dataset dataset(data_);
    const std::unique_ptr<Evaluator> evaluator =
        make_evaluator(session, model, {dataset, {{16, 16}}, 1, DataPlace::host, TestTimeAugmentation::flip});
    return {evaluator->batch(), device.ops().export_plan(), evaluator->evaluate()};
  }

  const Communicator world_{MPI_COMM_WORLD};
  const std::filesystem::path data_ =
      std::filesystem::path(testing::TempDir()) / ("make_evaluator_test_" + std::to_string(world_.size()));
  TemporaryFolder plans_;  // each rank its own: only rank 0 uses it
};

TEST_F(MakeEvaluatorTest, all_ranks_have_the_kernels_of_rank_0_which_the_next_run_finds) {
  const Outcome outcome = evaluate(21);
  EXPECT_EQ(outcome.batch, 21);
  EXPECT_NE(outcome.plan, "");
  EXPECT_EQ(world_.all_gather(outcome.plan), std::vector(static_cast<std::size_t>(world_.size()), outcome.plan));
  EXPECT_EQ(std::filesystem::is_empty(plans_.path()), world_.rank() != 0);
  EXPECT_EQ(evaluate(21).plan, outcome.plan);
}

TEST_F(MakeEvaluatorTest, a_batch_that_does_not_fit_into_memory_is_halved) {
  const Outcome whole = evaluate(21);
  const Outcome parts = evaluate(7);
  EXPECT_EQ(parts.batch, 6);
  EXPECT_EQ(parts.result.samples, samples);
  EXPECT_EQ(parts.result.predictions, whole.result.predictions);
}

TEST_F(MakeEvaluatorTest, one_sample_that_does_not_fit_is_an_error) {
  if (world_.size() > 1) GTEST_SKIP() << "it ends the job";
  try {
    evaluate(0);
    FAIL() << "it fits";
  } catch (const Error& error) {
    EXPECT_EQ(error.failure(), Failure::out_of_memory);
  }
}

}  // namespace lockstep::make_evaluator_test
