#include "search/journal/shared_search.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>

#include "base/io/file.hpp"
#include "support/message_of.hpp"
#include "support/messages.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::shared_search_test {

class SharedSearchTest : public testing::Test {
 protected:
  // The message states the number of a process.
  void expect_refused(const std::function<void()>& join) const {
    const std::string message = message_of(Failure::usage, join);
    EXPECT_TRUE(message.starts_with(fmt::format("'{}' belongs to another search: ", folder_.path().string())))
        << message;
  }

  TemporaryFolder folder_;
};

TEST_F(SharedSearchTest, one_process_runs_a_trial) {
  SharedSearch search(folder_.path(), "17");
  EXPECT_TRUE(search.is_free(3));
  search.take(3);
  EXPECT_FALSE(search.is_free(3));
  EXPECT_TRUE(search.holds(3));
  EXPECT_EQ(search.lease_of(3), 1);
  EXPECT_FALSE(search.holds(4));
  search.release(3);
  EXPECT_FALSE(search.holds(3));
  EXPECT_TRUE(search.is_free(3));
}

TEST_F(SharedSearchTest, a_lost_lease_is_not_released) {
  SharedSearch search(folder_.path(), "17");
  search.take(3);
  const TrialLease taken(folder_.path() / "trial-3", this_lock_holder(), TrialLease::default_heartbeat);
  EXPECT_FALSE(search.holds(3));
  search.release(3);
  EXPECT_TRUE(taken.is_held());
}

TEST_F(SharedSearchTest, refuses_a_second_search_in_its_folder) {
  const SharedSearch search(folder_.path(), "17");
  expect_refused([&] { const SharedSearch other(folder_.path(), "18"); });
  expect_refused([&] { require_no_other_group(folder_.path(), ""); });
  require_no_other_group(folder_.path(), "17");
}

TEST_F(SharedSearchTest, refuses_the_folder_of_a_search_that_works_alone) {
  const FolderLock alone(folder_.path(), "--output");
  expect_refused([&] { const SharedSearch shared(folder_.path(), "17"); });
}

TEST_F(SharedSearchTest, the_folder_is_free_after_its_end) {
  { const SharedSearch search(folder_.path(), "17"); }
  require_no_other_group(folder_.path(), "");
  const SharedSearch other(folder_.path(), "18");
}

TEST_F(SharedSearchTest, refuses_groups_that_are_no_names) {
  for (const std::string& group : {std::string("../x"), std::string("a.b"), std::string(65, 'a')}) {
    expect_error(Failure::usage, {"--join", group}, [&] { const SharedSearch search(folder_.path(), group); });
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

}  // namespace lockstep::shared_search_test
