#include "runtime/rank_view.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "base/error.hpp"

namespace lockstep {
namespace {

TEST(RankView, a_sum_has_its_number) {
  RankView view;
  view.phase = Phase::reducing;
  view.step = 3;
  view.sum = 12;
  EXPECT_EQ(place_words(view), "summing gradients at step 3, sum 12");
}

TEST(RankView, ranks_are_told_in_ranges) {
  EXPECT_EQ(rank_words({3}), "rank 3");
  EXPECT_EQ(rank_words({5, 0, 4, 3}), "ranks 0, 3-5");
  EXPECT_EQ(rank_words({0, 1}), "ranks 0-1");
}

TEST(RankView, seconds_are_told_as_finely_as_they_matter) {
  EXPECT_EQ(seconds_words(0.34), "0.3 s");
  EXPECT_EQ(seconds_words(300.4), "300 s");
}

TEST(RankView, a_stopped_process_shows_it) {
  const pid_t process = ::fork();
  if (process == 0) {
    ::pause();
    ::_exit(0);
  }
  ::kill(process, SIGSTOP);
  int status = 0;
  ::waitpid(process, &status, WUNTRACED);
  RankView view;
  view.process_state = process_state_of(process);
  EXPECT_TRUE(view.is_stopped()) << view.process_state;
  ::kill(process, SIGKILL);
  ::waitpid(process, &status, 0);
  EXPECT_EQ(process_state_of(process), '?');
}

RankView sample_view() {
  RankView view;
  view.rank = 6;
  view.host = "n2";
  view.phase = Phase::reading;
  view.step = 411;
  view.sum = 823;
  view.shards = {0, 4};
  view.process_state = 'D';
  view.still_seconds = 12.5;
  return view;
}

TEST(RankView, another_node_reads_what_was_written) {
  const RankView sent = sample_view();
  const std::vector<RankView> views = views_from_text(to_text(std::vector{sent, RankView{}}), "n2");
  ASSERT_EQ(views.size(), 2U);
  const RankView& got = views[0];
  EXPECT_EQ(got.rank, sent.rank);
  EXPECT_EQ(got.host, "n2");
  EXPECT_EQ(got.code, sent.code);
  EXPECT_EQ(got.phase, sent.phase);
  EXPECT_EQ(got.step, sent.step);
  EXPECT_EQ(got.sum, sent.sum);
  EXPECT_EQ(got.shards, sent.shards);
  EXPECT_EQ(got.process_state, sent.process_state);
  EXPECT_EQ(got.still_seconds, sent.still_seconds);
}

TEST(RankView, text_that_no_rank_writes_is_refused) {
  const std::string good = to_text(std::vector{sample_view()});
  for (const std::string& bad :
       {std::string(), good.substr(0, good.size() - 1), std::string("[[1]]"), std::string("[[1,2,\"x\",0,0,[],63,0]]"),
        std::string("{\"a\":1}"), std::string("7")}) {
    EXPECT_THROW(static_cast<void>(views_from_text(bad, "n2")), Error) << bad;
  }
}

}  // namespace
}  // namespace lockstep
