#include "search/remove_checkpoints.hpp"

#include <gtest/gtest.h>

#include <set>

#include "base/io/file.hpp"
#include "files/checkpoint/checkpoint.hpp"
#include "files/checkpoint/custom_checkpoint.hpp"
#include "run/checkpoint_files.hpp"
#include "support/samples/small_checkpoint.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::remove_checkpoints_test {

namespace fs = std::filesystem;

class RemoveCheckpointsTest : public testing::Test {
 protected:
  RemoveCheckpointsTest() {
    std::string metrics;
    for (const std::int64_t step : {5, 10, 15}) {
      write(step, small_checkpoint(step));
      metrics +=
          fmt::format(R"({{"kind":"test","epoch":1,"step":{},"loss":1,"accuracy":{}}})", step, 1.0 / step) + "\n";
    }
    write_file_atomically(folder_.trial(1) / "metrics.jsonl", metrics);
    trials_[1].steps = 15;
    trials_[1].metric = 0.1;
  }

  fs::path checkpoints() const { return folder_.trial(1) / "checkpoints"; }
  fs::path file_of(std::int64_t step) const { return checkpoints() / checkpoint_name(step); }
  void write(std::int64_t step, const Checkpoint& checkpoint) const {
    fs::create_directories(checkpoints());
    write_file_atomically(file_of(step), std::span<const std::byte>(checkpoint_image(checkpoint)));
  }
  std::set<std::int64_t> steps() const {
    std::set<std::int64_t> steps;
    for (const auto& [step, file] : checkpoints_in(checkpoints())) steps.insert(step);
    return steps;
  }
  std::int64_t remove(const Retention& rule) {
    space_.kept = rule;
    return remove_checkpoints(space_, folder_, trials_).files;
  }

  TemporaryFolder temporary_;
  SearchFolder folder_{temporary_.path() / "search"};
  Space space_;
  std::map<std::int64_t, TrialRecord> trials_;
};

TEST_F(RemoveCheckpointsTest, the_rule_decides) {
  EXPECT_EQ(remove({0, 1, 1}), 1);
  EXPECT_EQ(steps(), (std::set<std::int64_t>{5, 15})) << "5 has the best accuracy";
  EXPECT_EQ(remove({0, 1, 1}), 0);
  EXPECT_EQ(remove({0, 0, 0}), 2);
  EXPECT_EQ(steps(), (std::set<std::int64_t>{}));
}

TEST_F(RemoveCheckpointsTest, those_of_a_custom_loop_are_known) {
  space_.metric = {Split::validation, TestMetric::loss, "x"};
  space_.smaller_is_better = true;
  const auto write_custom = [&](std::int64_t step, const CustomCheckpoint& checkpoint) {
    write_file_atomically(file_of(step), std::span<const std::byte>(checkpoint_image(checkpoint)));
  };
  for (const std::int64_t step : {5, 10, 15}) write_custom(step, {step, {}, {{"n", step}}, 1, {{"lr", "1"}}});
  write_custom(3, {3, {}, {{"n", 3}}, 1, {{"lr", "2"}}});  // another program's
  EXPECT_EQ(remove({0, 0, 1}), 2);
  EXPECT_EQ(steps(), (std::set<std::int64_t>{3, 15}));
}

TEST_F(RemoveCheckpointsTest, a_trial_without_a_result_keeps_its_checkpoints) {
  trials_[1] = {};
  trials_[1].code = 79;
  EXPECT_EQ(remove({0, 0, 0}), 0);
  EXPECT_EQ(steps().size(), 3U);
}

TEST_F(RemoveCheckpointsTest, files_of_others_stay) {
  const fs::path other = temporary_.path() / "other";
  fs::create_directory(other);
  fs::rename(file_of(5), other / "precious.h5");
  fs::create_symlink(other / "precious.h5", file_of(5));
  fs::create_hard_link(file_of(10), other / "linked.h5");
  write_file_atomically(file_of(3), "no checkpoint");
  write_file_atomically(checkpoints() / "notes", "of a user");
  Checkpoint foreign = small_checkpoint(4);
  foreign.state.recipe["lr"] = 7;
  write(4, foreign);
  write(20, small_checkpoint(20));  // later than the last result
  write(8, small_checkpoint(9));    // renamed
  EXPECT_EQ(remove({0, 0, 0}), 1);
  EXPECT_EQ(steps(), (std::set<std::int64_t>{3, 4, 5, 8, 10, 20}));
  EXPECT_TRUE(fs::exists(other / "precious.h5"));
  EXPECT_TRUE(fs::exists(checkpoints() / "notes"));
}

TEST_F(RemoveCheckpointsTest, links_to_folders_are_not_followed) {
  const fs::path other = temporary_.path() / "other";
  fs::rename(checkpoints(), other);
  fs::create_directory_symlink(other, checkpoints());
  EXPECT_EQ(remove({0, 0, 0}), 0);
  fs::remove(checkpoints());
  fs::rename(other, checkpoints());
  fs::rename(folder_.trial(1), other);
  fs::create_directory_symlink(other, folder_.trial(1));
  EXPECT_EQ(remove({0, 0, 0}), 0);
  EXPECT_EQ(steps().size(), 3U);
}

}  // namespace lockstep::remove_checkpoints_test
