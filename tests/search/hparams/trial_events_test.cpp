// The files grow as if the search had not been interrupted. tests/end_to_end/search_test.py reads the records.
#include "search/hparams/trial_events.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/io/file.hpp"
#include "support/messages.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::trial_events_test {

class TrialEventsTest : public testing::Test {
 protected:
  TrialEventsTest() { space_.hyperparameters = {{"lr", 1, Hyperparameter::Kind::real, {}, 0, 1}}; }

  void run_search(const char* setting = "--lr=0.5") const {
    TrialEvents events(space_, output_, folder_.path());
    events.start(1, {setting});
    events.add_result(1, 10, 0.25);
    events.end(1, SessionStatus::success);
  }
  std::string written() const { return read_file(file_, 10000); }

  TemporaryFolder folder_;
  std::filesystem::path output_ = "/searches/mine";
  std::filesystem::path file_ = folder_.path() / "trial-1/events.out.tfevents.search";
  Space space_;
};

TEST_F(TrialEventsTest, a_continued_search_appends_what_the_file_lacks) {
  run_search();
  const std::string whole = written();
  run_search();
  EXPECT_EQ(written(), whole);
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{3}, whole.size() / 2, whole.size() - 1}) {
    write_file_atomically(file_, whole.substr(0, bytes));
    run_search();
    ASSERT_EQ(written().size(), whole.size()) << bytes;
    run_search();
    EXPECT_EQ(written().size(), whole.size()) << bytes;
  }
}

// Opening a pipe waits for its reader.
TEST_F(TrialEventsTest, a_pipe_is_refused) {
  ASSERT_EQ(::mkfifo((folder_.path() / "events.out.tfevents.search").c_str(), 0600), 0);
  expect_error(Failure::usage, {"--tensorboard", "events.out.tfevents.search", "not a regular file"},
               [&] { TrialEvents(space_, output_, folder_.path()); });
}

TEST_F(TrialEventsTest, events_of_another_search_stay) {
  run_search();
  const std::string whole = written();
  run_search("--lr=0.75");  // somebody has changed the file: a warning
  EXPECT_EQ(written(), whole);
  expect_error(Failure::usage, {"--tensorboard", "another search"},
               [&] { TrialEvents(space_, "/searches/other", folder_.path()); });
  Space other = space_;
  other.hyperparameters[0].most = 2;
  expect_error(Failure::usage, {"--tensorboard", "another search"},
               [&] { TrialEvents(other, output_, folder_.path()); });
}

}  // namespace lockstep::trial_events_test
