#include "files/checkpoint/checkpoint_folder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "base/io/file.hpp"
#include "support/messages.hpp"
#include "support/samples/small_checkpoint.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::checkpoint_folder_test {

using testing::HasSubstr;

class CheckpointFolderTest : public testing::Test {
 protected:
  static Checkpoint checkpoint_of(std::int64_t step) {
    Checkpoint checkpoint = small_checkpoint(step);
    checkpoint.state.progress.tested_step = 0;
    checkpoint.state.scores.clear();
    return checkpoint;
  }
  // Of a step that was tested.
  static Checkpoint tested(std::int64_t step, double accuracy) {
    Checkpoint checkpoint = checkpoint_of(step);
    checkpoint.state.progress.tested_step = step;
    checkpoint.state.report.score = accuracy;
    return checkpoint;
  }
  std::shared_ptr<FolderLock> locked() const { return std::make_shared<FolderLock>(path_, "--checkpoints"); }
  // A folder that holds whole checkpoints of `steps`.
  void fill(std::initializer_list<std::int64_t> steps) const {
    CheckpointFolder folder(locked(), {.latest = 100});
    for (const std::int64_t step : steps) folder.write(checkpoint_of(step));
  }
  void damage(std::int64_t step) const { std::ofstream(file_of(step)) << "no checkpoint"; }
  std::filesystem::path file_of(std::int64_t step) const { return path_ / fmt::format("step-{:012}.h5", step); }
  std::vector<std::int64_t> steps_here() const {
    std::vector<std::int64_t> steps;
    for (std::int64_t step = 0; step < 100; ++step) {
      if (std::filesystem::exists(file_of(step))) steps.push_back(step);
    }
    return steps;
  }

  TemporaryFolder temporary_;
  const std::filesystem::path path_ = temporary_.path() / "runs" / "checkpoints";
};

TEST_F(CheckpointFolderTest, an_empty_one_has_nothing_to_go_on_from) {
  EXPECT_FALSE(CheckpointFolder(locked(), {}).newest_valid().has_value());
}

TEST_F(CheckpointFolderTest, the_newest_one_is_found) {
  fill({3, 20, 7});
  std::optional<CheckpointFolder::Found> found = CheckpointFolder(locked(), {}).newest_valid();
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->path, file_of(20));
  EXPECT_EQ(parse_checkpoint(found->path, found->image).state.progress.step, 20);
}

TEST_F(CheckpointFolderTest, a_damaged_one_is_named_and_the_one_before_is_used) {
  fill({3, 7, 20});
  damage(20);
  testing::internal::CaptureStderr();
  CheckpointFolder folder(locked(), {.latest = 1, .best = 0});
  EXPECT_EQ(folder.newest_valid()->path, file_of(7));
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("'" + file_of(20).string() + "'"));
  EXPECT_EQ(steps_here(), (std::vector<std::int64_t>{3, 7, 20}));
}

TEST_F(CheckpointFolderTest, of_a_training_that_diverged_the_newest_with_finite_weights_is_good) {
  CheckpointFolder folder(locked(), {.latest = 100});
  EXPECT_EQ(folder.newest_finite(), std::filesystem::path());
  for (const std::int64_t step : {3, 7, 20}) folder.write(checkpoint_of(step));
  Checkpoint diverged = checkpoint_of(21);
  diverged.model.entries[1].values[0] = std::numeric_limits<float>::quiet_NaN();
  folder.write(diverged);
  EXPECT_EQ(folder.newest_finite(), file_of(20));
  damage(20);
  EXPECT_EQ(folder.newest_finite(), file_of(7));
}

TEST_F(CheckpointFolderTest, if_all_are_damaged_nothing_is_overwritten) {
  fill({3, 7});
  damage(3);
  damage(7);
  CheckpointFolder folder(locked(), {});
  expect_error(Failure::bad_data, {"--resume", path_.string()}, [&] { folder.newest_valid(); });
  EXPECT_EQ(steps_here(), (std::vector<std::int64_t>{3, 7}));
}

TEST_F(CheckpointFolderTest, a_checkpoint_under_another_steps_name_is_passed_over) {
  fill({3, 7});
  std::filesystem::rename(file_of(3), file_of(30));
  testing::internal::CaptureStderr();
  EXPECT_EQ(CheckpointFolder(locked(), {}).newest_valid()->path, file_of(7));
  const std::string warning = testing::internal::GetCapturedStderr();
  EXPECT_THAT(warning, HasSubstr("'" + file_of(30).string() + "'"));
  EXPECT_THAT(warning, HasSubstr("step 3"));
}

TEST_F(CheckpointFolderTest, what_a_killed_run_left_half_written_is_never_a_checkpoint) {
  std::filesystem::create_directories(path_);
  const std::filesystem::path left = path_ / ".step-000000000009.h5.00000000004711ab.lockstep-partial";
  write_file_atomically(left, std::span<const std::byte>(checkpoint_image(checkpoint_of(9))));
  testing::internal::CaptureStderr();
  CheckpointFolder folder(locked(), {});
  EXPECT_FALSE(folder.newest_valid().has_value());
  EXPECT_TRUE(std::filesystem::exists(left)) << "it goes when nothing more can keep a training from beginning";
  EXPECT_FALSE(folder.has_after(-1));
  folder.resume_after(-1, {});
  EXPECT_FALSE(std::filesystem::exists(left));
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("'" + left.string() + "'"));
}

TEST_F(CheckpointFolderTest, other_files_are_nobodys_business) {
  fill({3});
  const std::vector<std::string> others = {"notes.txt", "download.partial",     ".step-000000000009.h5.4711.partial",
                                           "step-7.h5", "step-00000000000x.h5", "step--00000000001.h5"};
  for (const std::string& name : others) std::ofstream(path_ / name) << "mine";
  CheckpointFolder folder(locked(), {.latest = 1, .best = 0});
  EXPECT_EQ(folder.newest_valid()->path, file_of(3));
  folder.write(checkpoint_of(4));
  for (const std::string& name : others) EXPECT_TRUE(std::filesystem::exists(path_ / name)) << name;
}

TEST_F(CheckpointFolderTest, the_newest_and_the_best_are_kept) {
  CheckpointFolder folder(locked(), {.latest = 2, .best = 1});
  folder.write(tested(10, 0.5));
  folder.write(tested(20, 0.9));
  folder.write(tested(30, 0.7));
  folder.write(checkpoint_of(35));
  folder.write(tested(40, 0.8));
  EXPECT_EQ(steps_here(), (std::vector<std::int64_t>{20, 35, 40}));
  folder.write(tested(50, 0.95));
  EXPECT_EQ(steps_here(), (std::vector<std::int64_t>{40, 50}));
}

TEST_F(CheckpointFolderTest, a_later_run_knows_the_best_from_the_checkpoint_it_goes_on_from) {
  {
    CheckpointFolder folder(locked(), {.latest = 2, .best = 1});
    folder.write(tested(10, 0.9));
    folder.write(checkpoint_of(20));
  }
  CheckpointFolder folder(locked(), {.latest = 1, .best = 1});
  std::optional<CheckpointFolder::Found> found = folder.newest_valid();
  folder.resume_after(20, parse_checkpoint(found->path, found->image).state.scores);
  folder.write(tested(30, 0.8));
  folder.write(checkpoint_of(40));
  EXPECT_EQ(steps_here(), (std::vector<std::int64_t>{10, 40}));
}

TEST_F(CheckpointFolderTest, what_is_damaged_does_not_count_as_kept) {
  fill({3, 7, 20});
  damage(20);
  CheckpointFolder folder(locked(), {.latest = 2, .best = 0});
  ASSERT_TRUE(folder.newest_valid().has_value());
  folder.resume_after(20, {});
  folder.write(checkpoint_of(8));
  EXPECT_EQ(steps_here(), (std::vector<std::int64_t>{7, 8, 20}));
  folder.write(checkpoint_of(20));  // the damaged one is replaced
  EXPECT_EQ(steps_here(), (std::vector<std::int64_t>{8, 20}));
}

TEST_F(CheckpointFolderTest, later_checkpoints_than_the_one_it_goes_on_from_are_moved_aside) {
  fill({3, 7, 20});
  testing::internal::CaptureStderr();
  CheckpointFolder folder(locked(), {});
  EXPECT_TRUE(folder.has_after(3));
  folder.resume_after(3, {});
  EXPECT_FALSE(folder.has_after(3));
  EXPECT_EQ(steps_here(), (std::vector<std::int64_t>{3}));
  EXPECT_TRUE(std::filesystem::exists(path_ / "set-aside-1" / file_of(20).filename()));
  const std::string warning = testing::internal::GetCapturedStderr();
  EXPECT_THAT(warning, HasSubstr("'" + path_.string() + "'"));
  EXPECT_THAT(warning, HasSubstr("'" + (path_ / "set-aside-1").string() + "'"));
  folder.resume_after(-1, {});
  EXPECT_TRUE(std::filesystem::exists(path_ / "set-aside-2" / file_of(3).filename()));
}

TEST_F(CheckpointFolderTest, files_in_it_are_told_from_those_elsewhere) {
  fill({3});
  const CheckpointFolder folder(locked(), {});
  EXPECT_TRUE(folder.has(file_of(3)));
  EXPECT_TRUE(folder.has(path_ / ".." / "checkpoints" / "step-000000000003.h5"));
  EXPECT_FALSE(folder.has(path_.parent_path() / "step-000000000003.h5"));
  EXPECT_FALSE(folder.has(path_ / "set-aside-1" / "step-000000000003.h5"));
  EXPECT_FALSE(folder.has(""));
}

TEST_F(CheckpointFolderTest, a_training_that_lost_its_lock_overwrites_nothing) {
  CheckpointFolder folder(locked(), {});
  folder.write(checkpoint_of(7));
  std::ofstream(path_ / "lock") << "another's";
  expect_error(Failure::out_of_step, {(path_ / "lock").string()}, [&] { folder.write(checkpoint_of(8)); });
  EXPECT_EQ(steps_here(), (std::vector<std::int64_t>{7}));
  std::filesystem::remove(path_ / "lock");
}

// Checkpoints of later steps that somebody copied there made it remove each of its own right after writing it.
TEST_F(CheckpointFolderTest, what_others_put_there_meanwhile_neither_counts_nor_goes) {
  CheckpointFolder folder(locked(), {.latest = 1, .best = 0});
  folder.resume_after(-1, {});
  folder.write(checkpoint_of(4));
  std::filesystem::copy_file(file_of(4), file_of(90));
  std::ofstream(file_of(80)) << "no checkpoint";
  folder.write(checkpoint_of(8));
  folder.write(checkpoint_of(12));
  EXPECT_EQ(steps_here(), (std::vector<std::int64_t>{12, 80, 90}));
}

TEST_F(CheckpointFolderTest, a_folder_that_was_removed_gets_the_next_checkpoint) {
  CheckpointFolder folder(locked(), {});
  folder.write(checkpoint_of(4));
  std::filesystem::remove_all(path_);
  folder.write(checkpoint_of(8));
  EXPECT_EQ(steps_here(), std::vector<std::int64_t>{8});
}

}  // namespace lockstep::checkpoint_folder_test
