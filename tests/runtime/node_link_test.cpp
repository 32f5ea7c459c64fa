// The ranks of one machine as if each sat on a node of its own.
#include "runtime/link/node_link.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/io/descriptor.hpp"
#include "base/log.hpp"
#include "support/messages.hpp"

namespace lockstep::node_link_test {

using Urgency = NodeLink::Urgency;

class NodeLinkTest : public testing::Test {
 protected:
  static Communicator world() { return Communicator(MPI_COMM_WORLD); }

  // Collective.
  void connect() {
    const Communicator all = world();
    owner_ = std::make_unique<NodeLink>(all, all.split(all.rank(), 0), host(all.rank()));
    all.barrier();
  }

  static std::string host(int rank) { return "n" + std::to_string(rank + 1); }

  template <typename Condition>
  bool comes_true(const Condition& condition) {
    const Stopwatch watch;
    while (!condition()) {
      if (watch.seconds() > 20) return false;
      owner_->serve();
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return true;
  }

  std::unique_ptr<NodeLink> owner_;
};

RankView view_of_rank(int rank) {
  RankView view;
  view.rank = rank;
  view.phase = Phase::backward;
  view.step = 10 + rank;
  return view;
}

TEST_F(NodeLinkTest, rank_0_learns_where_the_others_are) {
  connect();
  const Communicator all = world();
  EXPECT_EQ(owner_->is_hub(), all.rank() == 0 && all.size() > 1);
  EXPECT_EQ(owner_->is_used(), all.size() > 1);
  const std::vector<RankView> own = {view_of_rank(all.rank())};
  owner_->send_views(own, 0);
  if (all.rank() == 0) {
    const auto wanted = static_cast<std::size_t>(all.size() - 1);
    EXPECT_TRUE(comes_true([&] { return owner_->others().size() == wanted; }));
    for (const RankView& view : owner_->others()) {
      EXPECT_EQ(view.host, host(view.rank));
      EXPECT_EQ(view.step, 10 + view.rank);
    }
  }
  all.barrier();
}

TEST_F(NodeLinkTest, a_node_that_ends_without_a_word_is_a_death_on_both_sides) {
  for (const int dying : {1, 0}) {
    connect();
    const Communicator all = world();
    if (all.size() == 1) GTEST_SKIP() << "one node has nobody to miss";
    if (all.rank() == dying) {
      owner_.reset();
    } else if (dying == 0 || all.rank() == 0) {
      ASSERT_TRUE(comes_true([&] { return owner_->find_death(Urgency::last_chance).has_value(); }));
      const RankFailure early = *owner_->find_death(Urgency::last_chance);
      ASSERT_TRUE(comes_true([&] { return owner_->find_death(Urgency::may_wait).has_value(); }));
      EXPECT_EQ(early.rank, dying);
      expect_message(early.sentence, {"rank " + std::to_string(dying) + " on " + host(dying), "killed"});
    }
    all.barrier();
    if (owner_) owner_->leave();
    owner_.reset();
    all.barrier();
  }
}

TEST_F(NodeLinkTest, a_node_that_leaves_is_not_missed) {
  connect();
  const Communicator all = world();
  if (all.rank() != 0) {
    owner_->leave();
    owner_.reset();
  }
  all.barrier();
  if (all.rank() == 0) {
    const Stopwatch watch;
    while (watch.seconds() < 0.3) owner_->serve();
    owner_->send_views({}, 1000);
    EXPECT_EQ(owner_->find_death(Urgency::last_chance), std::nullopt);
    EXPECT_EQ(owner_->find_lost_heartbeat(10), std::nullopt);
  }
}

TEST_F(NodeLinkTest, silence_is_told_after_the_timeout_and_time_for_others) {
  connect();
  const Communicator all = world();
  if (all.size() == 1) GTEST_SKIP() << "one node has nobody to miss";
  owner_->send_views({}, 300);
  EXPECT_EQ(owner_->find_lost_heartbeat(300), std::nullopt);
  owner_->send_views({}, 5);
  const std::optional<RankFailure> early = owner_->find_lost_heartbeat(300);
  const bool speaks_first = all.rank() == 0 && all.size() == 2;
  EXPECT_EQ(early.has_value(), speaks_first) << "who may be cut off leaves the word to others";
  owner_->send_views({}, 3);
  EXPECT_EQ(owner_->find_lost_heartbeat(300).has_value(), speaks_first || all.rank() != 0);
  owner_->send_views({}, 3);
  const std::optional<RankFailure> silence = owner_->find_lost_heartbeat(300);
  ASSERT_TRUE(silence);
  const int missed = all.rank() == 0 ? 1 : 0;
  if (all.size() == 2 || missed == 0) {
    EXPECT_EQ(silence->rank, missed);
  }
  EXPECT_TRUE(silence->sentence.starts_with("no heartbeat from rank ")) << silence->sentence;
  EXPECT_TRUE(silence->sentence.ends_with(
      " for 311 s. It is stopped, or its node is cut off from the network. Check that node. --hang-timeout 0 waits "
      "forever."))
      << silence->sentence;
  all.barrier();
}

// A node that was cut off wrote, on a file system that it still reached, that rank 0 was silent.
TEST_F(NodeLinkTest, rank_0_speaks_first_as_long_as_it_hears_a_node) {
  connect();
  const Communicator all = world();
  if (all.size() < 3) GTEST_SKIP() << "wants a node that is heard and one that is not";
  if (all.rank() == 0) owner_->send_views({}, 200);
  all.barrier();
  if (all.rank() == 2) owner_->send_views(std::vector{view_of_rank(2)}, 0);
  if (all.rank() == 0) {
    EXPECT_TRUE(comes_true([&] { return !owner_->others().empty(); }));
    owner_->send_views({}, 105);
    const std::optional<RankFailure> silence = owner_->find_lost_heartbeat(300);
    ASSERT_TRUE(silence);
    EXPECT_EQ(silence->rank, 1);
  }
  all.barrier();
}

TEST_F(NodeLinkTest, what_is_answered_is_no_silence) {
  connect();
  const Communicator all = world();
  if (all.size() == 1) GTEST_SKIP() << "one node has nobody to miss";
  owner_->send_views({}, 300);
  all.barrier();
  const Stopwatch watch;
  while (watch.seconds() < 0.5) owner_->serve();
  EXPECT_EQ(owner_->find_lost_heartbeat(10), std::nullopt);
  all.barrier();
}

// Whoever could write to a node was believed.
TEST_F(NodeLinkTest, what_a_node_did_not_send_is_told_and_blames_nobody) {
  connect();
  const Communicator all = world();
  if (all.size() == 1) GTEST_SKIP() << "one node has nobody to miss";
  if (all.rank() == 1) {
    std::vector<pollfd> handles;
    owner_->add_handles(handles);
    const std::string forged = std::string(64, '0') + " bye\n";
    EXPECT_EQ(::send(handles.front().fd, forged.data(), forged.size(), 0), static_cast<ssize_t>(forged.size()));
  }
  if (all.rank() == 0) {
    testing::internal::CaptureStderr();
    const Stopwatch watch;
    while (watch.seconds() < 1) owner_->serve();
    expect_message(testing::internal::GetCapturedStderr().substr(log::prefix().size()), {"rank 1 on n2", "network"});
    EXPECT_EQ(owner_->find_death(Urgency::last_chance), std::nullopt);
  }
  all.barrier();
}

TEST_F(NodeLinkTest, a_node_that_does_not_find_rank_0_says_so_and_nobody_is_missed) {
  const Communicator all = world();
  if (all.size() == 1) GTEST_SKIP() << "one node has nobody to find";
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  testing::internal::CaptureStderr();
  if (all.rank() == 0) {  // cannot listen
    const Descriptor next(::dup(0));
    const rlimit none{static_cast<rlim_t>(next), before.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &none);
  }
  connect();
  ::setrlimit(RLIMIT_NOFILE, &before);
  const std::string said = testing::internal::GetCapturedStderr();
  if (all.rank() == 0) {
    EXPECT_EQ(said, "");
  } else {
    expect_message(said.substr(log::prefix().size()), {"rank 0 on n1", "firewall"});
  }
  EXPECT_EQ(owner_->is_used(), all.rank() == 0);
  owner_->send_views({}, 1000);
  EXPECT_EQ(owner_->find_lost_heartbeat(10), std::nullopt);
  EXPECT_EQ(owner_->find_death(Urgency::last_chance), std::nullopt);
}

}  // namespace lockstep::node_link_test
