#include "train/checkpoint_lock.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <memory>
#include <vector>

#include "base/clock.hpp"
#include "base/file.hpp"
#include "support/temporary_folder.hpp"
#include "words_of.hpp"

namespace lockstep {
namespace {

using namespace std::chrono_literals;

constexpr auto beat = 50ms;

// On another node, so that nothing is known of its process.
LockHolder stranger() {
  LockHolder holder = this_lock_holder();
  holder.host = "elsewhere";
  holder.process = 4711;
  holder.job = "17";
  return holder;
}

class CheckpointLockTest : public testing::Test {
 protected:
  void leave_lock_of(const LockHolder& holder) const {
    write_file_atomically(lock_, lock_holder_text(holder) + "\n00000000000000000000\n");
  }
  std::string refusal() const {
    return words_of(Failure::usage, [&] { CheckpointLock(folder_.path(), this_lock_holder(), beat); });
  }
  std::string refused_for(const std::string& holder) const {
    return "'" + folder_.path().string() + "' belongs to another training: " + holder +
           " (two would overwrite each other's checkpoints). Wait for it, or choose another --checkpoints.";
  }

  TemporaryFolder folder_;
  const std::filesystem::path lock_ = folder_.path() / "lock";
};

TEST_F(CheckpointLockTest, is_taken_kept_and_given_back) {
  {
    const CheckpointLock lock(folder_.path(), this_lock_holder(), beat);
    EXPECT_TRUE(std::filesystem::exists(lock_));
    lock.require_held();
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

TEST_F(CheckpointLockTest, a_second_training_is_refused_while_the_first_one_beats) {
  const CheckpointLock first(folder_.path(), stranger(), beat);
  EXPECT_EQ(refusal(), refused_for("job 17 on elsewhere (process 4711)"));
  first.require_held();
}

TEST_F(CheckpointLockTest, a_holder_that_never_beats_again_loses_it_after_three_beats) {
  leave_lock_of(stranger());
  const Stopwatch watch;
  const CheckpointLock lock(folder_.path(), this_lock_holder(), beat);
  EXPECT_GE(watch.seconds(), 0.15);
  lock.require_held();
}

TEST_F(CheckpointLockTest, a_dead_process_of_this_node_loses_it_at_once) {
  LockHolder dead = this_lock_holder();
  dead.process = ::fork();
  if (dead.process == 0) ::_exit(0);
  ::waitpid(static_cast<pid_t>(dead.process), nullptr, 0);
  leave_lock_of(dead);
  const CheckpointLock lock(folder_.path(), this_lock_holder(), 1h);
  lock.require_held();
}

TEST_F(CheckpointLockTest, a_process_number_that_was_used_again_is_not_mistaken_for_the_holder) {
  LockHolder earlier = this_lock_holder();
  earlier.start = "1@another boot";
  leave_lock_of(earlier);
  const CheckpointLock lock(folder_.path(), this_lock_holder(), 1h);
}

TEST_F(CheckpointLockTest, a_living_process_of_this_node_is_refused_even_if_it_is_slow) {
  leave_lock_of(this_lock_holder());
  std::atomic<bool> stop = false;
  std::thread beating([&] {
    for (int count = 1; !stop; ++count) {
      std::this_thread::sleep_for(2 * beat);
      std::ofstream(lock_, std::ios::app) << count << std::flush;
    }
  });
  EXPECT_NE(refusal().find("(two would overwrite each other's checkpoints)"), std::string::npos);
  stop = true;
  beating.join();
}

TEST_F(CheckpointLockTest, a_requeued_job_takes_it_from_its_earlier_run_at_once_and_no_other_job_does) {
  LockHolder earlier = stranger();
  earlier.restarts = 2;
  LockHolder later = this_lock_holder();
  later.job = "17";
  later.restarts = 3;
  EXPECT_TRUE(is_gone(earlier, later));
  EXPECT_FALSE(is_gone(later, earlier));
  LockHolder same = earlier;
  same.host = "a third node";
  EXPECT_FALSE(is_gone(earlier, same));
  later.job = "18";
  EXPECT_FALSE(is_gone(earlier, later));
  LockHolder without_slurm = stranger();
  without_slurm.job = "";
  later.job = "";
  EXPECT_FALSE(is_gone(without_slurm, later));
}

TEST_F(CheckpointLockTest, in_a_container_of_its_own_a_process_number_says_nothing) {
  LockHolder holder = this_lock_holder();
  holder.start = "1@another boot";
  holder.name_space += 1;
  EXPECT_FALSE(is_gone(holder, this_lock_holder()));
}

TEST_F(CheckpointLockTest, the_earlier_holder_finds_out_that_it_lost_it) {
  const CheckpointLock first(folder_.path(), this_lock_holder(), beat);
  leave_lock_of(stranger());
  EXPECT_EQ(words_of(Failure::out_of_step, [&] { first.require_held(); }),
            "the lock '" + lock_.string() +
                "' is no longer this training's: it is held by job 17 on elsewhere (process 4711) (what it writes must "
                "not be overwritten). Was this one paused for long, or the file removed?");
  std::filesystem::remove(lock_);
  EXPECT_NE(words_of(Failure::out_of_step, [&] { first.require_held(); }).find("it is gone"), std::string::npos);
}

TEST_F(CheckpointLockTest, it_does_not_remove_a_lock_that_is_anothers) {
  {
    const CheckpointLock first(folder_.path(), this_lock_holder(), beat);
    leave_lock_of(stranger());
  }
  EXPECT_TRUE(std::filesystem::exists(lock_));
}

TEST_F(CheckpointLockTest, of_a_folder_that_vanished_it_leaves_the_word_to_writing) {
  const std::filesystem::path inner = folder_.path() / "inner";
  std::filesystem::create_directory(inner);
  const CheckpointLock lock(inner, this_lock_holder(), beat);
  std::filesystem::remove_all(inner);
  lock.require_held();
}

TEST_F(CheckpointLockTest, rubbish_in_the_file_is_a_holder_that_says_nothing) {
  for (const char* text : {"", "{}", "{\"job\": 3}\n", "\xff\xfe"}) {
    std::ofstream(lock_) << text;
    const CheckpointLock lock(folder_.path(), this_lock_holder(), beat);
    lock.require_held();
  }
}

TEST_F(CheckpointLockTest, of_many_that_come_at_once_one_gets_it) {
  leave_lock_of(stranger());
  std::vector<std::unique_ptr<CheckpointLock>> locks(6);
  std::vector<std::thread> threads;
  for (std::unique_ptr<CheckpointLock>& lock : locks) {
    threads.emplace_back([&] {
      try {
        lock = std::make_unique<CheckpointLock>(folder_.path(), this_lock_holder(), 1s);
      } catch (const Error&) {
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  int holders = 0;
  for (const std::unique_ptr<CheckpointLock>& lock : locks) {
    if (lock != nullptr && words_of(Failure::out_of_step, [&] { lock->require_held(); }) == "no error") ++holders;
  }
  EXPECT_EQ(holders, 1);
}

}  // namespace
}  // namespace lockstep
