// The memory that rank 0 needs to write a state that is divided among ranks.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "files/checkpoint/checkpoint.hpp"
#include "step/whole_step.hpp"
#include "support/memory_limit.hpp"
#include "support/samples/small_checkpoint.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::checkpoint_memory_test {

class CheckpointMemoryTest : public testing::Test {
 protected:
  static WeightSyncOptions options() {
    WeightSyncOptions options;
    options.optimizer.kind = OptimizerKind::adamw;
    options.shard_optimizer = true;
    return options;
  }
  std::int64_t largest_tensor_bytes() const {
    std::int64_t bytes = 0;
    for (const Parameter& parameter : step_.model().store.parameters()) {
      bytes = std::max(bytes, parameter.count() * size_of(DType::f32));
    }
    return bytes;
  }

  const Communicator world_{MPI_COMM_WORLD};
  const Session session_{world_, open_backend({.name = "cpu", .threads = 1})};
  const LoaderShare share_{world_.size(), world_.size(), world_.rank(), 1};
  WholeStep step_{session_, {"resnet18", {32, 32, 3}, 10}, share_, options(), 0.1F, 3};
};

// The weights or one of the moments as a whole would not fit.
TEST_F(CheckpointMemoryTest, rank_0_needs_room_for_one_tensor) {
  const Checkpoint checkpoint = small_checkpoint();
  const TemporaryFolder folder;
  const auto path = folder.path() / "checkpoint.h5";
  const std::int64_t largest = largest_tensor_bytes();
  constexpr std::int64_t hdf5_bytes = std::int64_t{24} << 20U;      // see require_memory_for_hdf5()
  ASSERT_LT(largest + hdf5_bytes, step_.sync().state_bytes() / 3);  // one of weights and two moments
  std::optional<UnpublishedFile> file;
  if (world_.rank() == 0) file.emplace(path);
  {
    const NoMemoryBeyond limit(static_cast<rlim_t>(largest + hdf5_bytes));
    stream_checkpoint(file ? &*file : nullptr, checkpoint, step_.sync());
  }
  if (world_.rank() != 0) return;
  file->publish([] {});
  const Checkpoint written = read_checkpoint(path);
  EXPECT_EQ(written.optimizer.size(), 2U);
  EXPECT_EQ(std::ssize(written.optimizer.begin()->second), std::ssize(step_.model().store.parameters()));
}

}  // namespace lockstep::checkpoint_memory_test
