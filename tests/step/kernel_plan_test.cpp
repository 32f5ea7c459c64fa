// Kernel choices of one run in the next: measured once, then found in the plan folder.
#include <gtest/gtest.h>

#include <filesystem>
#include <iterator>
#include <string>
#include <vector>

#include "backend/cpu_backend.hpp"
#include "device/cpu/cpu_device.hpp"
#include "step/whole_step.hpp"
#include "support/device/repeating_device.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::kernel_plan_test {

constexpr std::int64_t micro_batch_size = 4;

class KernelPlanTest : public testing::Test {
 protected:
  // A run of its own: device, step and what it chose.
  struct Outcome {
    PlanUse use;
    std::string plan;
  };
  Outcome run(const std::string& model, const std::filesystem::path& folder,
              const std::vector<SampleShape>& micro_batches = {}) const {
    const Session session{
        world_, std::make_unique<CpuBackend>(make_repeating_device(cpu::open_cpu_device({.threads = 1}))), folder};
    const LoaderShare share{micro_batch_size * world_.size(), world_.size(), world_.rank(), 1};
    WholeStep step(session, {model, {32, 32, 3}, 10}, share, {"auto", 16 << 10}, OptimizerOptions{}, 0.0F, 3);
    step.choose_kernels({micro_batch_size}, micro_batches);
    return {step.plan_use(), session.device().ops().export_plan()};
  }
  std::int64_t on_rank_0(std::int64_t count) const { return world_.rank() == 0 ? count : 0; }

  const Communicator world_{MPI_COMM_WORLD};
  TemporaryFolder folder_;  // each rank its own: only rank 0 shall use it
};

TEST_F(KernelPlanTest, the_second_run_measures_nothing_and_computes_as_the_first) {
  const Outcome first = run("lenet", folder_.path());
  const Outcome second = run("lenet", folder_.path());
  EXPECT_EQ(first.use.recalled, 0);
  EXPECT_EQ(first.use.measured, on_rank_0(5));  // two convolutions, three directions, but no gradient of the pictures
  EXPECT_EQ(second.use.recalled, on_rank_0(5));
  EXPECT_EQ(second.use.measured, 0);
  EXPECT_EQ(second.plan, first.plan);
}

TEST_F(KernelPlanTest, another_network_leaves_the_choices_of_the_first_in_place) {
  run("lenet", folder_.path());
  run("convnet", folder_.path());
  EXPECT_EQ(run("lenet", folder_.path()).use.recalled, on_rank_0(5));
}

TEST_F(KernelPlanTest, kernels_are_chosen_for_images_of_every_size) {
  const std::vector<SampleShape> sizes = {{16, 16, 3}, {24, 24, 3}};
  const Outcome one = run("resnet20", folder_.path());
  const Outcome grown = run("resnet20", folder_.path(), sizes);
  if (world_.rank() == 0) {
    EXPECT_GT(grown.use.measured, one.use.measured);
  }
  EXPECT_EQ(run("resnet20", folder_.path(), sizes).use.measured, 0);
}

TEST_F(KernelPlanTest, only_rank_0_writes) {
  run("lenet", folder_.path());
  const std::filesystem::directory_iterator files(folder_.path());
  EXPECT_EQ(std::distance(files, std::filesystem::directory_iterator()), on_rank_0(1));
}

TEST_F(KernelPlanTest, without_a_folder_every_run_measures) {
  run("lenet", "");
  EXPECT_EQ(run("lenet", "").use.measured, on_rank_0(5));
}

}  // namespace lockstep::kernel_plan_test
