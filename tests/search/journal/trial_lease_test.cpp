#include "search/journal/trial_lease.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "base/io/file.hpp"
#include "support/stranger.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::trial_lease_test {

using namespace std::chrono_literals;

constexpr auto heartbeat = 100ms;

class TrialLeaseTest : public testing::Test {
 protected:
  // Until the trial is free, at most for `limit`.
  bool becomes_free(std::chrono::milliseconds limit) {
    LeaseWatch watch;
    const Stopwatch waited;
    while (!watch.is_free(trial_, own_)) {
      if (waited.milliseconds() > static_cast<double>(limit.count())) return false;
      std::this_thread::sleep_for(10ms);
    }
    return true;
  }
  bool is_free() const { return LeaseWatch().is_free(trial_, own_); }

  TemporaryFolder folder_;
  const std::filesystem::path trial_ = folder_.path() / "trial-1";
  const LockHolder own_ = this_lock_holder();
};

TEST_F(TrialLeaseTest, each_lease_has_the_next_number) {
  EXPECT_TRUE(is_free());
  for (int number = 1; number < 4; ++number) {
    TrialLease lease(trial_, own_, heartbeat);
    EXPECT_EQ(lease.number(), number);
    EXPECT_TRUE(lease.is_held());
    EXPECT_FALSE(is_free());
    lease.release();
    EXPECT_FALSE(lease.is_held());
    EXPECT_TRUE(is_free());
  }
}

TEST_F(TrialLeaseTest, heartbeats_keep_it_and_silence_loses_it) {
  const TrialLease lease(trial_, stranger(), heartbeat);
  EXPECT_FALSE(becomes_free(1s));
  EXPECT_TRUE(lease.is_held());
  write_file_atomically(trial_ / "lease", read_file(trial_ / "lease", 1000));  // its heartbeats now reach nobody
  const Stopwatch watch;
  EXPECT_TRUE(becomes_free(10s));
  EXPECT_GE(watch.milliseconds(), 300);
}

// The earlier holder was slow, not dead. It and its training find out.
TEST_F(TrialLeaseTest, a_taken_trial_fences_its_earlier_holder) {
  const TrialLease slow(trial_, stranger(), heartbeat);
  write_file_atomically(trial_ / "lock", lock_holder_text(stranger()) + "\n0\n");
  TrialLease taken(trial_, own_, heartbeat);
  EXPECT_FALSE(slow.is_held());
  EXPECT_TRUE(taken.is_held());
  EXPECT_TRUE(is_absent(trial_ / "lock"));
  std::this_thread::sleep_for(3 * heartbeat);  // the heartbeats of the earlier holder do not change the file
  EXPECT_TRUE(taken.is_held());
  EXPECT_EQ(read_lease(trial_).number, 2);
}

TEST_F(TrialLeaseTest, of_a_killed_process_of_this_node_is_free_once_its_training_has_ended) {
  const pid_t child = ::fork();
  if (child == 0) {
    new TrialLease(trial_, this_lock_holder(), heartbeat);  // NOLINT: it is killed while it has the lease
    ::raise(SIGKILL);
  }
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(read_lease(trial_).number, 1);
  EXPECT_TRUE(is_free());
  write_file_atomically(trial_ / "lock", lock_holder_text(own_) + "\n0\n");  // a living process of this node
  EXPECT_FALSE(becomes_free(1s));
  std::filesystem::remove(trial_ / "lock");
  EXPECT_TRUE(is_free());
}

// A training on another node that still writes keeps the trial, also if its search is silent.
TEST_F(TrialLeaseTest, a_training_with_heartbeats_keeps_the_trial) {
  { const TrialLease lease(trial_, stranger(), 10ms); }
  std::jthread training([&](const std::stop_token& stop) {
    for (int beat = 0; !stop.stop_requested(); ++beat) {
      write_file_atomically(trial_ / "lock", fmt::format("{}\n{}\n", lock_holder_text(stranger()), beat));
      std::this_thread::sleep_for(20ms);
    }
  });
  std::this_thread::sleep_for(50ms);
  EXPECT_FALSE(becomes_free(1s));
}

TEST_F(TrialLeaseTest, damaged_files_are_leases_of_nobody) {
  std::filesystem::create_directory(trial_);
  for (const std::string& text : {std::string(), std::string("{"), std::string(5000, '\0')}) {
    write_file_atomically(trial_ / "lease", text);
    EXPECT_TRUE(is_free());
  }
}

}  // namespace lockstep::trial_lease_test
