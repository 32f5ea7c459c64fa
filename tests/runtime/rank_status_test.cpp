#include "runtime/watch/rank_status.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "runtime/watch/hang.hpp"
#include "runtime/watch/rank_view.hpp"

namespace lockstep::rank_status_test {

class RankStatusTest : public testing::Test {
 protected:
  RankStatusTest() { rank_status::move_to(&status_); }
  ~RankStatusTest() override { rank_status::move_to(nullptr); }

  RankView view() const { return view_of(status_, 3, "gpu07"); }

  RankStatus status_{};
};

TEST_F(RankStatusTest, others_see_what_the_rank_says) {
  rank_status::enter(Phase::backward);
  rank_status::set_step(412);
  rank_status::begin_sum();
  const RankView seen = view();
  EXPECT_EQ(seen.rank, 3);
  EXPECT_EQ(seen.host, "gpu07");
  EXPECT_EQ(seen.code, RankStatus::running);
  EXPECT_EQ(seen.phase, Phase::backward);
  EXPECT_EQ(seen.step, 412);
  EXPECT_GE(seen.sum, 1);
  EXPECT_EQ(describe_place(seen), "in backward at step 412");
}

TEST_F(RankStatusTest, no_step_is_told_before_the_first) {
  RankStatus fresh{};
  EXPECT_EQ(describe_place(view_of(fresh, 0, "n1")), "starting");
}

TEST_F(RankStatusTest, whatever_gets_done_counts_as_progress) {
  std::set<std::uint64_t> seen = {status_.progress};
  rank_status::enter(Phase::forward);
  seen.insert(status_.progress);
  rank_status::mark_progress();
  seen.insert(status_.progress);
  rank_status::begin_sum();
  seen.insert(status_.progress);
  EXPECT_EQ(seen.size(), 4U);
}

TEST_F(RankStatusTest, time_is_kept_by_phase) {
  rank_status::enter(Phase::reading);
  const std::int64_t before = status_.spent_ns[static_cast<std::size_t>(Phase::reading)];
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  rank_status::enter(Phase::forward);
  const std::int64_t spent = status_.spent_ns[static_cast<std::size_t>(Phase::reading)] - before;
  EXPECT_GE(spent, 20'000'000);
  EXPECT_LT(spent, 10'000'000'000);
  EXPECT_LE(status_.since_ns, monotonic_ns());
}

TEST_F(RankStatusTest, each_thread_that_reads_is_seen_with_its_shard) {
  const std::int32_t first = rank_status::register_shard("/data/train-00000.h5");
  const std::int32_t second = rank_status::register_shard("/data/train-00001.h5");
  rank_status::enter(Phase::reading);
  rank_status::set_step(7);
  std::barrier begun(4);
  std::barrier seen(4);
  const auto read = [&](std::int32_t shard, const std::function<void()>& then) {
    return std::jthread([&, shard, then] {
      rank_status::begin_reading(shard);
      then();
      begun.arrive_and_wait();
      seen.arrive_and_wait();
    });
  };
  const std::jthread stuck_in_second = read(second, [] {});
  const std::jthread stuck_in_first = read(first, [] {});
  const std::jthread done = read(first, [] { rank_status::end_reading(); });
  begun.arrive_and_wait();
  EXPECT_EQ(describe_place(view()),
            "waiting for data at step 7, reading shard '/data/train-00000.h5' and shard '/data/train-00001.h5'");
  rank_status::enter(Phase::forward);
  EXPECT_EQ(describe_place(view()), "in forward at step 7") << "data loaded ahead hold nobody up";
  seen.arrive_and_wait();
}

// ChannelVector places were there for up to 256 threads of each loader: one that was stuck could hide behind another.
TEST_F(RankStatusTest, a_stuck_thread_is_seen_among_as_many_as_there_may_be) {
  constexpr int count = 513;  // two loaders and main
  std::vector<std::int32_t> stuck;
  std::barrier all_begun(count);
  std::barrier all_done(count + 1);
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) {
    const std::int32_t shard = rank_status::register_shard("/data/many-" + std::to_string(i));
    if (i % 100 == 0) stuck.push_back(shard);
    threads.emplace_back([&, shard, i] {
      rank_status::begin_reading(shard);
      all_begun.arrive_and_wait();
      if (i % 100 != 0) rank_status::end_reading();
      all_done.arrive_and_wait();
      all_done.arrive_and_wait();
    });
  }
  all_done.arrive_and_wait();
  std::ranges::sort(stuck);  // numbers of shards come in no order
  EXPECT_EQ(view().shards, stuck);
  const std::uint64_t before = progress_of(status_);
  all_done.arrive_and_wait();
  for (std::thread& thread : threads) thread.join();
  EXPECT_GE(before, std::uint64_t{count});
}

TEST_F(RankStatusTest, threads_that_come_later_take_the_places_of_those_that_ended) {
  for (int i = 0; i < 2000; ++i) std::thread([] { rank_status::begin_reading(0); }).join();
  EXPECT_LE(status_.readers_used, 2U);  // this thread may have one
  EXPECT_TRUE(view().shards.empty()) << "a thread that ended reads nothing";
}

// Ranks of two trainings name other shards: the number that meant the third one here meant another one there.
TEST_F(RankStatusTest, the_number_of_a_shard_depends_on_its_path_alone) {
  const std::int32_t number = rank_status::register_shard("/data/train-00002.h5");
  rank_status::register_shard("/other/train-00000.h5");
  EXPECT_EQ(rank_status::register_shard("/data/train-00002.h5"), number);
  EXPECT_EQ(number, 1852560583);
}

TEST_F(RankStatusTest, a_training_counts_its_own_steps_and_sums_and_is_left_at_its_end) {
  rank_status::set_step(7);
  rank_status::begin_sum();
  {
    const rank_status::TeamScope in_team({4, 2});
    EXPECT_EQ(view().team, (Team{4, 2}));
    EXPECT_EQ(view().step, -1);
    EXPECT_EQ(view().sum, 0);
  }
  EXPECT_EQ(view().team, Team{});
}

TEST_F(RankStatusTest, a_shard_that_has_no_name_here_is_no_mistake) {
  RankView other = view();
  other.phase = Phase::reading;
  other.step = 1;
  other.shards = {1'000'000};
  EXPECT_EQ(describe_place(other), "waiting for data at step 1, reading an unknown shard");
  EXPECT_EQ(rank_status::shard_name(-1), "");
}

TEST_F(RankStatusTest, the_record_moves_with_what_it_holds) {
  rank_status::enter(Phase::testing);
  rank_status::set_step(5);
  auto other = std::make_unique<RankStatus>();
  rank_status::move_to(other.get());
  EXPECT_EQ(view_of(*other, 0, "").step, 5);
  EXPECT_EQ(view_of(*other, 0, "").phase, Phase::testing);
  rank_status::set_step(6);
  EXPECT_EQ(view_of(*other, 0, "").step, 6);
  EXPECT_EQ(view().step, 5);
  rank_status::move_to(&status_);
}

TEST_F(RankStatusTest, what_a_device_marks_is_seen_once_it_is_copied) {
  SumMarks marks{1648, 2, 5'000'000, 1647, 1'800'000};
  {
    const rank_status::PublishedMarks shown(&marks);
    EXPECT_EQ(view().device, std::nullopt);
    const std::uint64_t before = progress_of(status_);
    rank_status::copy_device_marks();
    const std::optional<DeviceView> seen = view().device;
    ASSERT_TRUE(seen);
    EXPECT_TRUE(seen->is_summing());
    EXPECT_EQ(describe_device(*seen), "in sum 1648 (bucket 2), after computing for 3.2 ms");
    EXPECT_NE(progress_of(status_), before) << "a device that gets on is progress";
  }
  EXPECT_EQ(view().device, std::nullopt) << "its memory is gone";
  marks.ended = 1648;
  rank_status::copy_device_marks();
  EXPECT_EQ(view().device, std::nullopt);
}

TEST_F(RankStatusTest, a_rank_without_a_device_that_marks_shows_none) {
  const rank_status::PublishedMarks shown(nullptr);
  rank_status::copy_device_marks();
  EXPECT_EQ(view().device, std::nullopt);
}

TEST(Phase, every_one_has_words_of_its_own) {
  std::set<std::string_view> words;
  for (std::size_t phase = 0; phase < phase_count; ++phase) words.insert(describe(static_cast<Phase>(phase)));
  EXPECT_EQ(words.size(), phase_count);
  EXPECT_FALSE(words.contains(""));
  EXPECT_EQ(describe(static_cast<Phase>(99)), "somewhere");
  EXPECT_EQ(describe(static_cast<Phase>(-1)), "somewhere");
}

}  // namespace lockstep::rank_status_test
