// How ranks agree to stop: before their work begins, and between steps.
#include "runtime/stop/stop_agreement.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <functional>
#include <string>

#include "support/messages.hpp"

namespace lockstep::stop_agreement_test {

class StopAgreementTest : public testing::Test {
 protected:
  bool is_last() const { return world_.rank() == world_.size() - 1; }
  // With what words `work` ended this rank's start; empty: it did not.
  static std::string end_of_start(const std::function<void()>& work) {
    try {
      work();
    } catch (const AgreedError& stopped) {
      EXPECT_EQ(stopped.failure(), Failure::stopped_early);
      return stopped.what();
    }
    return "";
  }

  Communicator world_{MPI_COMM_WORLD};
  ProcessSignals signals_{Stopping::graceful};
  StopAgreement stops_{world_, &signals_, std::nullopt};
};

TEST_F(StopAgreementTest, a_start_goes_on_where_nobody_is_asked) {
  EXPECT_EQ(end_of_start([&] { stops_.end_start_if_asked("its outcome."); }), "");
  EXPECT_NO_THROW(StopAgreement(world_, nullptr, std::nullopt).end_start_if_asked());
}

TEST_F(StopAgreementTest, a_request_to_one_rank_ends_the_start_of_all_with_its_words) {
  if (is_last()) ::raise(SIGUSR1);
  expect_message(end_of_start([&] { stops_.end_start_if_asked("its outcome."); }), {"SIGUSR1", "its outcome."});
}

TEST_F(StopAgreementTest, what_rank_0_waits_for_is_waited_for) {
  bool done = false;
  stops_.wait_for_rank_0([&](const std::function<void()>& look) {
    for (int i = 0; i < 3; ++i) look();
    done = true;
  });
  EXPECT_EQ(done, world_.rank() == 0);
}

TEST_F(StopAgreementTest, what_rank_0_refuses_all_refuse) {
  expect_error(Failure::usage, {"runs/a"}, [&] {
    stops_.wait_for_rank_0([](const std::function<void()>& look) {
      look();
      throw Error(Failure::usage, "'runs/a' belongs to another run.");
    });
  });
}

// Rank 0 waited for half a minute to know whose a lock was, and the others for rank 0, deaf to whoever asked them.
TEST_F(StopAgreementTest, a_request_to_any_rank_ends_the_waiting_of_all) {
  int looks = 0;
  if (is_last()) ::raise(SIGTERM);
  const StopAgreement::Work work = [&](const std::function<void()>& look) {
    for (; looks < 1000; ++looks) look();
  };
  expect_message(end_of_start([&] { stops_.wait_for_rank_0(work); }), {"SIGTERM"});
  EXPECT_LT(looks, 1000);
}

// Rank 0 wrote "another rank" where the last one knew the signal.
TEST_F(StopAgreementTest, who_was_sent_a_signal_asks_the_others_once_and_all_know_why) {
  EXPECT_FALSE(stops_.must_ask({}));
  if (is_last()) ::raise(SIGUSR1);
  EXPECT_EQ(stops_.must_ask({}), is_last());
  EXPECT_FALSE(stops_.must_ask({}));
  EXPECT_EQ(stops_.reason(), "SIGUSR1");
}

TEST_F(StopAgreementTest, of_several_reasons_the_first_ranks_is_told) {
  StopAgreement stops(world_, &signals_, 0);
  if (is_last() && world_.size() > 1) ::raise(SIGUSR1);
  EXPECT_EQ(stops.must_ask({}), world_.rank() == 0 || is_last());
  EXPECT_EQ(stops.reason(), "--time-limit");
}

TEST_F(StopAgreementTest, all_stop_before_the_step_that_a_device_ahead_has_not_begun) {
  EXPECT_FALSE(stops_.is_agreed());
  stops_.agree(7, 2);
  EXPECT_TRUE(stops_.is_agreed());
  EXPECT_FALSE(stops_.stops_before(8));
  EXPECT_FALSE(stops_.stops_before(9));
  EXPECT_TRUE(stops_.stops_before(10));
  stops_.agree(8, 2);
  EXPECT_TRUE(stops_.stops_before(10)) << "the first results that say so count";
}

// 1000 s are left: what has to be done before them decides.
TEST_F(StopAgreementTest, rank_0_asks_while_there_is_time_for_a_step_a_checkpoint_and_a_test) {
  const auto asks = [&](double step_seconds, double test_seconds, const StopAgreement::ToFinish& left) {
    StopAgreement stops(world_, nullptr, 1000);
    stops.note_step(step_seconds);
    stops.note_step(0.5 * step_seconds);
    stops.note_test(2 * test_seconds);
    stops.note_test(test_seconds);
    const bool must_ask = stops.must_ask(left);
    const bool is_asked = world_.max(must_ask ? 1 : 0) > 0;
    EXPECT_EQ(is_asked ? stops.reason() : "", is_asked ? "--time-limit" : "");
    return must_ask;
  };
  const bool is_rank_0 = world_.rank() == 0;
  EXPECT_FALSE(asks(490, 0, {}));
  EXPECT_EQ(asks(499.5, 0, {}), is_rank_0) << "two seconds are kept";
  EXPECT_EQ(asks(500, 0, {}), is_rank_0);
  EXPECT_EQ(asks(300, 0, {.checkpoint_seconds = 200}), is_rank_0);
  EXPECT_FALSE(asks(300, 500, {}));
  EXPECT_EQ(asks(300, 500, {.test_follows = true}), is_rank_0);
  EXPECT_FALSE(asks(300, 300, {.test_follows = true})) << "the last test counts, not the longest";
}

TEST_F(StopAgreementTest, a_signal_is_told_also_where_time_is_up) {
  StopAgreement stops(world_, &signals_, 0);
  ::raise(SIGUSR1);
  EXPECT_TRUE(stops.must_ask({}));
  EXPECT_EQ(stops.reason(), "SIGUSR1");
}

}  // namespace lockstep::stop_agreement_test
