#include "runtime/watch/hang.hpp"

#include <gtest/gtest.h>

#include "support/messages.hpp"

namespace lockstep::hang_test {

constexpr double timeout_seconds = 300;

RankView rank_at(int rank, Phase phase, double stalled_seconds, std::int64_t step = 412, std::int64_t sum = 1648) {
  RankView view;
  view.rank = rank;
  view.host = rank < 2 ? "n1" : "n2";
  view.phase = phase;
  view.step = step;
  view.sum = sum;
  view.process_state = 'S';
  view.stalled_seconds = stalled_seconds;
  return view;
}

std::optional<RankFailure> find(const std::vector<RankView>& views) {
  return find_hang(views, timeout_seconds, Coverage::all_ranks);
}

TEST(Hang, nobody_is_found_while_one_that_works_gets_on) {
  EXPECT_EQ(find({rank_at(0, Phase::reducing, 400), rank_at(1, Phase::testing, 2)}), std::nullopt);
  EXPECT_EQ(find({rank_at(0, Phase::reducing, 400), rank_at(1, Phase::forward, 299)}), std::nullopt);
  EXPECT_EQ(find({rank_at(0, Phase::reducing, 400), rank_at(1, Phase::reducing, 299)}), std::nullopt);
}

TEST(Hang, ranks_that_gather_statistics_of_norms_wait_for_the_one_in_forward) {
  const auto found = find({rank_at(0, Phase::sharing_norms, 320), rank_at(1, Phase::forward, 300)});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->rank, 1);
  EXPECT_NE(found->sentence.find("(rank 0: gathering statistics of norms at step 412)"), std::string::npos)
      << found->sentence;
}

TEST(Hang, the_rank_that_works_and_gets_no_further_is_named_with_those_that_wait) {
  const auto found = find({rank_at(0, Phase::reducing, 320), rank_at(1, Phase::reducing, 320),
                           rank_at(2, Phase::forward, 300), rank_at(3, Phase::reducing, 310)});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->rank, 2);
  expect_message(found->sentence, {"rank 2 on n2", "300 s", "step 412", "ranks 0-1, 3"});
}

TEST(Hang, of_two_that_stand_still_the_first_is_named) {
  EXPECT_EQ(find({rank_at(0, Phase::forward, 301), rank_at(1, Phase::reading, 350)})->rank, 1);
}

TEST(Hang, a_process_that_waits_for_a_disk_is_told_so) {
  RankView rank = rank_at(0, Phase::reading, 300);
  rank.process_state = 'D';
  expect_message(find({rank})->sentence, {"rank 0 on n1", "300 s", "disk"});
}

TEST(Hang, a_stopped_rank_is_named_wherever_it_stopped) {
  RankView stopped = rank_at(1, Phase::reducing, 305);
  stopped.process_state = 'T';
  const auto found = find({rank_at(0, Phase::reading, 310), stopped});
  ASSERT_TRUE(found);
  expect_message(found->sentence, {"rank 1 on n1", "stopped", "305 s", "kill -CONT"});
}

TEST(Hang, where_all_wait_the_one_out_of_step_is_named) {
  const auto found = find({rank_at(0, Phase::reducing, 320), rank_at(1, Phase::gathering, 330, 411, 1644),
                           rank_at(2, Phase::reducing, 320)});
  ASSERT_TRUE(found);
  expect_message(found->sentence, {"rank 1 on n1", "step 411", "ranks 0, 2", "step 412"});
}

TEST(Hang, of_two_that_wait_in_different_places_the_one_behind_is_named) {
  EXPECT_EQ(find({rank_at(0, Phase::reducing, 320, 412, 1648), rank_at(1, Phase::reducing, 320, 412, 1647)})->rank, 1);
}

TEST(Hang, where_all_wait_in_one_place_the_network_is_asked_about) {
  const auto found = find({rank_at(1, Phase::reducing, 320), rank_at(2, Phase::reducing, 320)});
  ASSERT_TRUE(found);
  expect_message(found->sentence, {"ranks 1-2", "320 s", "network"});
}

RankView on_gpu(RankView view, std::uint64_t begun, std::uint64_t ended) {
  view.device = DeviceView{{begun, 2, 5'000'000, ended, 1'800'000}, view.stalled_seconds + 1};
  return view;
}

TEST(Hang, where_all_hosts_wait_the_rank_whose_gpu_is_behind_is_named) {
  // Its host is a step ahead of another's, as queues allow.
  RankView behind = on_gpu(rank_at(2, Phase::reducing, 300, 413), 1647, 1647);
  behind.device->marks.ended_ns = 5'400'000;
  const auto found = find({on_gpu(rank_at(0, Phase::reducing, 300), 1648, 1647), behind,
                           on_gpu(rank_at(3, Phase::reducing, 300), 1648, 1647)});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->rank, 2);
  expect_message(found->sentence, {"rank 2 on n2", "301 s", "sum 1647", "ranks 0, 3", "GPU"});
}

TEST(Hang, a_gpu_that_does_not_come_out_of_a_sum_is_behind_one_that_has) {
  const auto found = find(
      {on_gpu(rank_at(0, Phase::reducing, 300), 1648, 1648), on_gpu(rank_at(1, Phase::reducing, 300), 1648, 1647)});
  ASSERT_TRUE(found);
  expect_message(found->sentence, {"rank 1 on n1", "301 s", "sum 1648 (bucket 2)", "rank 0", "GPU"});
}

TEST(Hang, where_all_wait_on_one_node_its_cores_are_asked_about) {
  const auto found = find({rank_at(0, Phase::reducing, 320), rank_at(1, Phase::reducing, 330)});
  ASSERT_TRUE(found);
  expect_message(found->sentence, {"ranks 0-1", "320 s", "cores"});
}

// A host that fills the device's queue waits for it in calls that are work on a CPU.
TEST(Hang, gpus_that_wait_in_one_sum_are_all_waiting_wherever_their_hosts_stand) {
  const auto found = find(
      {on_gpu(rank_at(0, Phase::reducing, 320), 1648, 1647), on_gpu(rank_at(1, Phase::reading, 330, 413), 1648, 1647)});
  ASSERT_TRUE(found);
  expect_message(found->sentence, {"ranks 0-1", "320 s", "GPU"});
}

TEST(Hang, a_host_that_works_and_gets_no_further_is_named_though_its_gpu_is_behind) {
  const auto found =
      find({on_gpu(rank_at(0, Phase::reducing, 320), 1648, 1647), on_gpu(rank_at(1, Phase::reading, 330), 1647, 1647)});
  ASSERT_TRUE(found);
  expect_message(found->sentence, {"rank 1 on n1", "330 s", "waiting for data", "rank 0"});
}

TEST(Hang, where_no_gpu_sums_the_hosts_say_who_is_out_of_step) {
  const auto found =
      find({on_gpu(rank_at(0, Phase::gathering, 320), 1648, 1648), on_gpu(rank_at(1, Phase::meeting, 320), 1648, 1648),
            on_gpu(rank_at(2, Phase::gathering, 320), 1648, 1648)});
  ASSERT_TRUE(found);
  expect_message(found->sentence, {"rank 1 on n1", "320 s", "ranks 0, 2"});
}

TEST(Hang, who_sees_a_part_of_the_job_does_not_say_that_all_wait) {
  const std::vector<RankView> views = {rank_at(0, Phase::reducing, 320), rank_at(1, Phase::reducing, 320)};
  EXPECT_EQ(find_hang(views, timeout_seconds, Coverage::some_ranks), std::nullopt);
}

TEST(Hang, ranks_that_are_done_or_have_failed_hold_nobody_up) {
  RankView done = rank_at(0, Phase::saving, 400);
  done.code = RankStatus::done;
  RankView failed = rank_at(1, Phase::forward, 400);
  failed.code = 65;
  EXPECT_EQ(find({done, failed}), std::nullopt);
  EXPECT_EQ(describe_others(std::vector{done}, 1), " (rank 0: done)");
}

TEST(Hang, a_long_list_of_places_is_cut) {
  std::vector<RankView> views;
  for (int rank = 0; rank < 6; ++rank) views.push_back(rank_at(rank, Phase::reducing, 1, 412, rank));
  EXPECT_TRUE(describe_others(views, 0).ends_with("rank 4: summing gradients at step 412, sum 4; others elsewhere)"))
      << describe_others(views, 0);
}

RankView of_team(const Team& team, RankView view) {
  view.team = team;
  return view;
}

// A training that stood still for good was not told while another one in the job went on, and its rank was out of step.
TEST(Hang, trainings_side_by_side_are_judged_by_themselves) {
  const Team first{0, 2};
  const Team second{2, 2};
  const std::vector<RankView> views = {
      of_team(first, rank_at(0, Phase::forward, 1, 12)), of_team(second, rank_at(2, Phase::reducing, 400)),
      of_team(first, rank_at(1, Phase::reducing, 1, 12)), of_team(second, rank_at(3, Phase::gathering, 400))};
  const std::vector<TeamInView> teams = teams_in_view(views, 4);
  ASSERT_EQ(teams.size(), 2U);
  EXPECT_EQ(teams[0].team, first);
  EXPECT_EQ(find_hang(teams[0].views, timeout_seconds, teams[0].coverage), std::nullopt);
  EXPECT_EQ(teams[1].team, second);
  EXPECT_EQ(teams[1].coverage, Coverage::all_ranks);
  const auto found = find_hang(teams[1].views, timeout_seconds, teams[1].coverage);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->sentence.find("rank 0"), std::string::npos) << found->sentence;
}

TEST(Hang, a_team_of_which_a_node_is_missing_is_seen_in_part) {
  const std::vector<RankView> views = {of_team({0, 3}, rank_at(0, Phase::reducing, 400)),
                                       of_team({0, 3}, rank_at(1, Phase::reducing, 400)),
                                       rank_at(3, Phase::meeting, 400)};
  const std::vector<TeamInView> teams = teams_in_view(views, 4);
  ASSERT_EQ(teams.size(), 2U);
  EXPECT_EQ(teams[0].coverage, Coverage::some_ranks);
  EXPECT_EQ(teams[1].coverage, Coverage::some_ranks) << "of the job's ranks that are in no training";
  EXPECT_EQ(teams_in_view(std::span(views).last(1), 1)[0].coverage, Coverage::all_ranks);
}

TEST(StallTimer, counts_from_the_last_progress) {
  StallTimer stillness;
  stillness.look(7, 1);
  EXPECT_EQ(stillness.seconds(), 0) << "nothing is known before the first look";
  stillness.look(7, 1);
  stillness.look(7, 1.5);
  EXPECT_EQ(stillness.seconds(), 2.5);
  stillness.look(8, 1);
  EXPECT_EQ(stillness.seconds(), 0);
}

TEST(StallTimer, every_record_that_changes_is_progress) {
  RankStatus status{};
  const std::uint64_t before = progress_of(status);
  status.readers_used = 6;
  status.readers[5].progress = 1;
  EXPECT_NE(progress_of(status), before);
}

}  // namespace lockstep::hang_test
