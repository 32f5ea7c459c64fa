// How ranks agree to stop before their work begins.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <functional>
#include <string>

#include "base/error.hpp"
#include "runtime/stop/ending.hpp"
#include "runtime/stop/stop_signal.hpp"

namespace lockstep {
namespace {

class StartStopsTest : public testing::Test {
 protected:
  bool is_last() const { return world_.rank() == world_.size() - 1; }
  // How `work` made this rank end; code 0: it did not.
  static Ending ending_of(const std::function<void()>& work) {
    try {
      work();
    } catch (const Stopped& stopped) {
      return stopped.ending;
    }
    return {};
  }

  Communicator world_{MPI_COMM_WORLD};
  StopSignal signal_;
  StartStops stops_{world_, &signal_};
};

TEST_F(StartStopsTest, nobody_stops_who_is_not_asked) {
  EXPECT_EQ(ending_of([&] { stops_.stop_if_asked("nothing was begun. The same command begins it."); }).code, 0);
  EXPECT_NO_THROW(StartStops(world_, nullptr).stop_if_asked());
}

TEST_F(StartStopsTest, a_request_to_one_rank_stops_all_with_its_words) {
  if (is_last()) ::raise(SIGUSR1);
  const Ending ending = ending_of([&] { stops_.stop_if_asked("nothing was begun. The same command begins it."); });
  EXPECT_EQ(ending.code, 75);
  EXPECT_EQ(ending.sentence, "stopped before the first step (SIGUSR1): nothing was begun. The same command begins it.");
}

TEST_F(StartStopsTest, what_rank_0_waits_for_is_waited_for) {
  bool done = false;
  stops_.wait_for_rank_0([&](const std::function<void()>& look) {
    for (int i = 0; i < 3; ++i) look();
    done = true;
  });
  EXPECT_EQ(done, world_.rank() == 0);
}

// Rank 0 waited for half a minute to know whose a lock was, and the others for rank 0, deaf to whoever asked them.
TEST_F(StartStopsTest, a_request_to_any_rank_ends_the_waiting_of_all) {
  int looks = 0;
  if (is_last()) ::raise(SIGTERM);
  const StartStops::Work work = [&](const std::function<void()>& look) {
    for (; looks < 1000; ++looks) look();
  };
  const Ending ending = ending_of([&] { stops_.wait_for_rank_0(work); });
  EXPECT_EQ(ending.code, static_cast<int>(Failure::stopped_early));
  EXPECT_THAT(
      ending.sentence,
      testing::StrEq("stopped before the first step (SIGTERM): nothing was changed. The same command starts again."));
  EXPECT_LT(looks, 1000);
}

}  // namespace
}  // namespace lockstep
