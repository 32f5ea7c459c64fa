#include "search/search_overview.hpp"

#include <gmock/gmock.h>

#include <algorithm>

#include "base/io/file.hpp"
#include "files/folder/folder_lock.hpp"
#include "support/messages.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::search_overview_test {

using testing::HasSubstr;

constexpr const char* journal =
    R"({"search":1,"space":{"program":"train_cifar","arguments":"--data d","hyperparameters":{"lr":{"type":"double","minval":"0.1","maxval":"0.3"}},"searcher":{"name":"asha","metric":"test_loss","max_length":{"epochs":"4"},"max_trials":"5"}},"orders":[{"trial":1,"rung":1,"length":2,"settings":["--lr=0.1"]},{"trial":2,"rung":1,"length":2,"settings":["--lr=0.2\u001b"]}]}
{"trial":1,"rung":1,"steps":20,"metric":0.75,"orders":[{"trial":3,"rung":1,"length":2,"settings":["--lr=0.3"]}]}
{"trial":2,"rung":1,"restart":1,"code":1,"reason":"no reason"}
{"trial":2,"rung":1,"steps":20,"metric":0.5,"orders":[{"trial":2,"rung":2,"length":4}]}
{"trial":3,"rung":1,"code":79,"reason":"the loss is nan","orders":[]}
{"trial":2,"rung":2,"steps":40,"metric":0.25,"orders":[]}
{"trial":4,"ru)";

class SearchOverviewTest : public testing::Test {
 protected:
  void write(std::string_view text) const { write_file_atomically(folder_.path() / "search.jsonl", text); }

  TemporaryFolder folder_;
};

TEST_F(SearchOverviewTest, a_folder_with_a_journal_is_one_of_a_search) {
  EXPECT_FALSE(holds_search(folder_.path()));
  write(journal);
  EXPECT_TRUE(holds_search(folder_.path()));
}

TEST_F(SearchOverviewTest, is_one_screen_with_the_best_trial_first) {
  write(journal);
  const std::string text = describe_search(folder_.path());
  EXPECT_THAT(text, HasSubstr("search over options of 'train_cifar'"));
  EXPECT_THAT(text, HasSubstr("asha, 3 trials so far, each of at most 4 epochs"));
  EXPECT_THAT(text, HasSubstr("stopped; the same command continues it"));
  EXPECT_THAT(text, HasSubstr("3, and 1 restart"));
  EXPECT_THAT(text, HasSubstr("trial 2, test-loss 0.2500 after 40 steps\n"));
  EXPECT_THAT(text, HasSubstr("\ntrial  rung  test-loss  state             lr\n"
                              "    2     2     0.2500  complete     0.2\\x1b\n"
                              "    1     1     0.7500  ended early      0.1\n"
                              "    3     -          -  failed (79)      0.3\n"));
  EXPECT_LE(std::ranges::count(text, '\n'), 24);
  write_file_atomically(folder_.path() / "best.h5", "");
  EXPECT_THAT(describe_search(folder_.path()), HasSubstr("  state      done\n"));
}

// job_status took a search for a training that has not started, and followed it for ever.
TEST_F(SearchOverviewTest, its_status_is_a_line_and_whether_a_process_works_on_it) {
  write(journal);
  SearchStatus status = search_status(folder_.path());
  EXPECT_FALSE(status.is_running);
  EXPECT_EQ(status.line,
            "stopped; the same command continues it: 3 trials, 3 results; best: trial 2, test-loss 0.2500 after 40 "
            "steps");
  const FolderLock one_of_many(folder_.path() / "tasks" / "17.1", "--output");
  status = search_status(folder_.path());
  EXPECT_TRUE(status.is_running);
  EXPECT_THAT(status.line, testing::StartsWith("running: 3 trials, "));
  EXPECT_THAT(describe_search(folder_.path()), HasSubstr("  state      running: "));
}

// No training, so no model is kept.
TEST_F(SearchOverviewTest, a_search_of_a_custom_loop_is_done_when_its_trials_are) {
  write(
      R"({"search":1,"space":{"program":"./mine","hyperparameters":{"n":"1"},"searcher":{"name":"single","metric":"x","smaller_is_better":"true","max_length":{"batches":"4"}}},"orders":[{"trial":1,"rung":1,"length":4,"settings":["--n=1"]}]}
{"trial":1,"rung":1,"steps":4,"metric":0.75,"orders":[]}
)");
  const std::string text = describe_search(folder_.path());
  EXPECT_THAT(text, HasSubstr("  state      done\n"));
  EXPECT_THAT(text, testing::Not(HasSubstr("A trial: inspect")));
}

TEST_F(SearchOverviewTest, the_best_trials_can_be_compared) {
  write(journal);
  const std::filesystem::path folder = folder_.path();
  EXPECT_EQ(best_trial_folders(folder, 5),
            (std::vector<std::filesystem::path>{folder / "trial-2", folder / "trial-1"}));
  EXPECT_EQ(best_trial_folders(folder, 1).size(), 1U);
  write(std::string_view(journal).substr(0, std::string_view(journal).find('\n') + 1));
  expect_error(Failure::usage, {folder.string()}, [&] { best_trial_folders(folder, 5); });
}

}  // namespace lockstep::search_overview_test
