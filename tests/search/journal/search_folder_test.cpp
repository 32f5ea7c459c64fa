#include "search/journal/search_folder.hpp"

#include <gtest/gtest.h>

#include "base/io/file.hpp"
#include "files/model_file.hpp"
#include "support/messages.hpp"
#include "support/samples/small_checkpoint.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::search_folder_test {

class SearchFolderTest : public testing::Test {
 protected:
  // The model of trial 3 after 10 steps.
  void write_model() const {
    std::filesystem::create_directories(folder_.trial(3));
    ModelFile model = small_checkpoint().model;
    model.shorter_side = 0;
    model.step = 10;
    write_model_file(folder_.model(3), model);
  }
  static std::string bytes(const std::filesystem::path& file) { return read_file(file, 1 << 24); }

  TemporaryFolder temporary_;
  SearchFolder folder_{temporary_.path()};
};

TEST_F(SearchFolderTest, names_of_trials) {
  EXPECT_EQ(trial_in_name("trial-3"), 3);
  for (const char* name : {"trial-03", "trial-3.log", "trial-", "trial-0", "trial--1", "best.h5", "xtrial-3"}) {
    EXPECT_EQ(trial_in_name(name), std::nullopt) << name;
  }
}

TEST_F(SearchFolderTest, the_best_model_is_a_copy) {
  write_model();
  folder_.keep_best_model(3, 10);
  EXPECT_EQ(bytes(folder_.best_model()), bytes(folder_.model(3)));
}

// A damaged model was published as the best.
TEST_F(SearchFolderTest, a_damaged_model_is_not_the_best) {
  write_file_atomically(folder_.best_model(), "an earlier one");
  write_model();
  std::string damaged = bytes(folder_.model(3));
  damaged[damaged.size() / 2] ^= 1;
  write_file_atomically(folder_.model(3), damaged);
  expect_error(Failure::bad_data, {"trial-3/model.h5", "best.h5"}, [&] { folder_.keep_best_model(3, 10); });
  write_model();
  expect_error(Failure::bad_data, {"trial-3/model.h5", "10", "20"}, [&] { folder_.keep_best_model(3, 20); });
  std::filesystem::rename(folder_.model(3), temporary_.path() / "elsewhere.h5");
  std::filesystem::create_symlink(temporary_.path() / "elsewhere.h5", folder_.model(3));
  expect_error(Failure::bad_data, {"trial-3/model.h5"}, [&] { folder_.keep_best_model(3, 10); });
  EXPECT_EQ(bytes(folder_.best_model()), "an earlier one");
}

// They were continued, as if they were new.
TEST_F(SearchFolderTest, trials_need_a_journal) {
  write_file_atomically(temporary_.path() / "notes", "of a user");
  folder_.require_no_trials();
  std::filesystem::create_directory(folder_.trial(12));
  expect_error(Failure::usage, {"trial-12", "search.jsonl"}, [&] { folder_.require_no_trials(); });
}

// It was followed out of the folder.
TEST_F(SearchFolderTest, a_link_is_no_folder_of_a_trial) {
  folder_.require_own_folder(3);
  write_model();
  folder_.require_own_folder(3);
  std::filesystem::create_directory_symlink(folder_.trial(3), folder_.trial(4));
  expect_error(Failure::usage, {"trial-4"}, [&] { folder_.require_own_folder(4); });
  std::filesystem::create_directory_symlink("nowhere", folder_.trial(5));
  expect_error(Failure::usage, {"trial-5"}, [&] { folder_.require_own_folder(5); });
  write_file_atomically(folder_.trial(6), "");
  expect_error(Failure::usage, {"trial-6"}, [&] { folder_.require_own_folder(6); });
}

}  // namespace lockstep::search_folder_test
