#include "files/checkpoint/checkpoint_writer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "support/samples/small_checkpoint.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::checkpoint_writer_test {

using testing::HasSubstr;

class CheckpointWriterTest : public testing::Test {
 protected:
  TemporaryFolder temporary_;
  const std::filesystem::path path_ = temporary_.path() / "checkpoints";
  CheckpointFolder folder_{std::make_shared<FolderLock>(path_, "--checkpoints"), {}};
};

TEST_F(CheckpointWriterTest, what_it_wrote_is_whole) {
  CheckpointWriter writer(folder_);
  EXPECT_TRUE(writer.is_idle());
  writer.start(small_checkpoint(12));
  writer.wait();
  EXPECT_TRUE(writer.is_idle());
  EXPECT_EQ(writer.record().step, 12);
  EXPECT_EQ(writer.record().failure, "");
  EXPECT_GT(writer.longest_seconds(), 0);
  EXPECT_EQ(read_checkpoint(writer.record().path).state.progress.step, 12);
}

TEST_F(CheckpointWriterTest, its_end_waits_for_the_one_under_way) {
  { CheckpointWriter(folder_).start(small_checkpoint(12)); }
  EXPECT_EQ(folder_.newest_valid()->path.filename(), "step-000000000012.h5");
}

TEST_F(CheckpointWriterTest, a_failure_is_told_at_once_and_remembered_and_the_next_one_may_succeed) {
  CheckpointWriter writer(folder_);
  const std::filesystem::path in_the_way = path_ / "step-000000000012.h5";
  std::filesystem::create_directory(in_the_way);
  testing::internal::CaptureStderr();
  writer.start(small_checkpoint(12));
  writer.wait();
  const std::string warning = testing::internal::GetCapturedStderr();
  EXPECT_THAT(warning, HasSubstr("step 12"));
  EXPECT_THAT(warning, HasSubstr("'" + in_the_way.string() + "'"));
  EXPECT_THAT(writer.record().failure, HasSubstr("Is a directory"));
  EXPECT_EQ(writer.record().failures, 1);
  EXPECT_EQ(writer.record().step, -1);

  std::filesystem::remove(in_the_way);
  writer.start(small_checkpoint(13));
  writer.wait();
  EXPECT_EQ(writer.record().failure, "");
  EXPECT_EQ(writer.record().failures, 1);
  EXPECT_EQ(writer.record().step, 13);
}

}  // namespace lockstep::checkpoint_writer_test
