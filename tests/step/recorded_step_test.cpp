// Steps that a device repeats instead of queueing them anew: the same gradients, whatever changes from step to step.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "backend/cpu_backend.hpp"
#include "device/cpu/cpu_device.hpp"
#include "runtime/watch/rank_view.hpp"
#include "step/named_model.hpp"
#include "step/noise.hpp"
#include "step/whole_step.hpp"
#include "support/device/gpu_options.hpp"
#include "support/device/hosted_cuda_device.hpp"
#include "support/device/repeating_device.hpp"

namespace lockstep {
namespace {

constexpr SampleShape shape{16, 16, 3};
constexpr std::int64_t micro_batch_size = 4;

// Other pictures in the same memory every time.
class OneBatchLoader final : public Loader {
 public:
  explicit OneBatchLoader(Device& device, const SampleShape& image = shape)
      : device_(device), batch_(noise_batch(device, image, micro_batch_size, 10)), pixels_(values()) {
    device.read(batch_.images, pixels_);
  }

  const Batch& next() override {
    std::ranges::rotate(pixels_, pixels_.begin() + 7);
    device_.write(pixels_, batch_.images);
    return batch_;
  }
  double waited_ms() const override { return 0; }

 private:
  std::vector<float> values() const {
    return std::vector<float>(static_cast<std::size_t>(batch_.images.shape().count()));
  }

  Device& device_;
  Batch batch_;
  std::vector<float> pixels_;
};

// What others see of this rank's device.
std::optional<DeviceView> device_marks() {
  rank_status::copy_device_marks();
  return view_of(rank_status::record(), 0, "").device;
}

enum class Updates { of_steps, of_micro_batches };

struct Case {
  const char* model;
  int micro_batches;
  bool on_gpu_kernels;
  Updates updates = Updates::of_steps;
  OptimizerKind optimizer = OptimizerKind::sgd;
};

WeightSyncOptions sync_options(const char* reducer, int micro_batches, Updates updates,
                               OptimizerKind optimizer = OptimizerKind::sgd) {
  WeightSyncOptions options{{reducer, 16 << 10}, {.kind = optimizer}, {}};
  if (updates == Updates::of_micro_batches) options.local = LocalUpdates{micro_batches, 0.7F, 0.9F};
  return options;
}

std::unique_ptr<Device> open(const Case& choice) {
  return choice.on_gpu_kernels ? open_hosted_cuda_device({}) : cpu::open_cpu_device({.threads = 1});
}

class RecordedStepTest : public testing::TestWithParam<Case> {
 protected:
  // What each of some steps sums up and makes of the weights, with a test between them as at an epoch's end.
  std::vector<std::vector<float>> outcomes_of_steps(std::unique_ptr<Device> device) {
    const Session session{world_, std::make_unique<CpuBackend>(std::move(device))};
    Device& on = session.device();
    const LoaderShare share{micro_batch_size * GetParam().micro_batches, GetParam().micro_batches, 0,
                            GetParam().micro_batches};
    const bool scales_loss = GetParam().updates == Updates::of_steps;
    WholeStep step(session, named_model(GetParam().model, shape), share,
                   sync_options("auto", share.micro_batches, GetParam().updates, GetParam().optimizer), 0.1F, 3);
    if (scales_loss) step.own_sync->scale_loss({2048, 0, 0});
    step.choose_kernels({micro_batch_size});
    OneBatchLoader loader(on);
    const Batch test = noise_batch(on, shape, micro_batch_size, 10);
    std::vector<std::vector<float>> outcomes;
    for (int index = 0; index < 5; ++index) {
      if (index == 3 && scales_loss) step.own_sync->scale_loss({1024, 0, 0});  // as after an overflow
      step.start(loader, index, 0.05 / (1 + index));
      step.finish();
      for (const Tensor& array : {step.model().store.gradient_buffer(), step.model().store.values()}) {
        on.read(array, outcomes.emplace_back(static_cast<std::size_t>(array.shape().count())));
      }
      step.model().network->forward(test.images, Mode::evaluate);
    }
    EXPECT_FALSE(device_marks()) << "the host's sums are counted by the host";
    return outcomes;
  }

  // What some steps of each of two sizes make of the weights, with a test in images of a third between them.
  std::vector<std::vector<float>> outcomes_of_growing_images(std::unique_ptr<Device> device) {
    const Session session{world_, std::make_unique<CpuBackend>(std::move(device))};
    Device& on = session.device();
    const LoaderShare share{micro_batch_size * GetParam().micro_batches, GetParam().micro_batches, 0,
                            GetParam().micro_batches};
    WholeStep step(session, named_model(GetParam().model, {28, 28, 3}), share,
                   sync_options("auto", share.micro_batches, GetParam().updates, GetParam().optimizer), 0.1F, 3);
    const std::vector<SampleShape> sizes = {shape, {24, 24, 3}};
    step.choose_kernels({micro_batch_size}, sizes);
    std::vector<std::vector<float>> outcomes;
    std::int64_t index = 0;
    for (const SampleShape& size : sizes) {
      OneBatchLoader loader(on, size);
      step.discard_graphs();
      for (int of_size = 0; of_size < 3; ++of_size) step.run(loader, index++, 0.05);
      const Tensor values = step.model().store.values();
      on.read(values, outcomes.emplace_back(static_cast<std::size_t>(values.shape().count())));
      const Batch test = noise_batch(on, {28, 28, 3}, micro_batch_size, 10);
      step.model().network->forward(test.images, Mode::evaluate);
    }
    return outcomes;
  }

  const Communicator world_{MPI_COMM_SELF};
};

TEST_P(RecordedStepTest, repeated_steps_do_what_called_ones_do) {
  const auto called = outcomes_of_steps(make_repeating_device(open(GetParam()), Recordings::called));
  const auto repeated = outcomes_of_steps(make_repeating_device(open(GetParam())));
  for (std::size_t step = 0; step < called.size(); ++step)
    EXPECT_EQ(repeated[step], called[step]) << "step " << step / 2;
  EXPECT_NE(called[3], called[1]);
}

// What was recorded on images of one size is of no use for those of another, nor for other memory.
TEST_P(RecordedStepTest, steps_on_larger_images_are_recorded_anew) {
  if (std::string(GetParam().model) == "lenet") GTEST_SKIP() << "takes images of one size";
  if (GetParam().on_gpu_kernels) GTEST_SKIP() << "what is recorded does not depend on them";
  const auto called = outcomes_of_growing_images(make_repeating_device(open(GetParam()), Recordings::called));
  EXPECT_EQ(outcomes_of_growing_images(make_repeating_device(open(GetParam()))), called);
}

INSTANTIATE_TEST_SUITE_P(, RecordedStepTest,
                         testing::Values(Case{"resnet20", 1, false}, Case{"resnet20", 4, false},
                                         Case{"lenet", 2, false}, Case{"resnet20", 2, true}, Case{"dropout", 3, false},
                                         Case{"dropout", 3, true}, Case{"resnet20", 3, true, Updates::of_micro_batches},
                                         Case{"resnet20", 1, false, Updates::of_micro_batches},
                                         Case{"resnet20", 1, false, Updates::of_steps, OptimizerKind::muon},
                                         Case{"resnet20", 2, true, Updates::of_steps, OptimizerKind::muon}),
                         [](const auto& test) {
                           return std::string(test.param.model) + "_" + std::to_string(test.param.micro_batches) +
                                  (test.param.updates == Updates::of_micro_batches ? "_updates" : "_parts") +
                                  (test.param.optimizer == OptimizerKind::muon ? "_muon" : "") +
                                  (test.param.on_gpu_kernels ? "_on_gpu_kernels" : "");
                         });

// The same on a GPU, update and sums included: a graph against the calls that it was made from.
struct GraphCase {
  const char* name;
  DType precision;
  int micro_batches;
  const char* reducer;
  Updates updates = Updates::of_steps;
};

class GraphTest : public testing::TestWithParam<GraphCase> {
 protected:
  std::string hash_after_steps(bool graphs) {
    const DeviceOptions options{.precision = GetParam().precision, .deterministic = true, .graphs = graphs};
    const Session session{world_, open_backend(gpu_options(options))};
    const LoaderShare share{micro_batch_size * GetParam().micro_batches, GetParam().micro_batches, 0,
                            GetParam().micro_batches};
    WholeStep step(session, {"resnet20", shape, 10}, share,
                   sync_options(GetParam().reducer, share.micro_batches, GetParam().updates), 0.1F, 3);
    step.choose_kernels({micro_batch_size});
    OneBatchLoader loader(session.device());
    for (int index = 0; index < steps; ++index) {
      step.start(loader, index, 0.05 / (1 + index));
      losses_ += step.finish().metrics.loss();
    }
    session.device().synchronize();
    marked_ = device_marks();
    buckets_ = step.sync().bucket_count();
    return step.model().store.weights_hash() + " " + std::to_string(losses_);
  }

  static constexpr int steps = 6;
  const Communicator world_{MPI_COMM_SELF};
  double losses_ = 0;
  std::optional<DeviceView> marked_;
  std::size_t buckets_ = 0;
};

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GraphTest);

TEST_P(GraphTest, learns_what_the_calls_learn_and_the_same_again) {
  const std::string called = hash_after_steps(false);
  losses_ = 0;
  const std::string repeated = hash_after_steps(true);
  losses_ = 0;
  EXPECT_EQ(repeated, called);
  EXPECT_EQ(hash_after_steps(true), repeated);
}

TEST_P(GraphTest, marks_every_sum_of_the_steps_that_are_repeated_too) {
  hash_after_steps(true);
  ASSERT_TRUE(marked_);
  EXPECT_EQ(marked_->marks.begun, steps * buckets_);
  EXPECT_EQ(marked_->marks.ended, steps * buckets_);
  EXPECT_EQ(marked_->marks.bucket, buckets_ - 1);
  EXPECT_GE(marked_->marks.ended_ns, marked_->marks.begun_ns);  // a coarse clock
}

std::vector<GraphCase> graph_cases() {
  if (visible_gpus().empty()) return {};
  return {{"cuda_fp32_nccl", DType::f32, 1, "nccl"},
          {"cuda_bf16_nccl_parts", DType::bf16, 4, "nccl"},
          {"cuda_fp16_nccl", DType::f16, 1, "nccl"},
          {"cuda_bf16_mpi", DType::bf16, 2, "mpi"},
          {"cuda_bf16_nccl_updates", DType::bf16, 3, "nccl", Updates::of_micro_batches}};
}

INSTANTIATE_TEST_SUITE_P(, GraphTest, testing::ValuesIn(graph_cases()),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace lockstep
