#include "files/folder/folder_lock.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <fstream>
#include <memory>
#include <vector>

#include "base/clock.hpp"
#include "base/io/file.hpp"
#include "support/message_of.hpp"
#include "support/messages.hpp"
#include "support/no_room.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::folder_lock_test {

using namespace std::chrono_literals;

constexpr auto heartbeat = 50ms;
const std::string option = "--checkpoints";

// On another node, so that nothing is known of its process.
LockHolder stranger() {
  LockHolder holder = this_lock_holder();
  holder.host = "elsewhere";
  holder.process = 4711;
  holder.job = "17";
  return holder;
}

class FolderLockTest : public testing::Test {
 protected:
  void leave_lock_of(const LockHolder& holder) const {
    write_file_atomically(lock_, lock_holder_text(holder) + "\n00000000000000000000\n");
  }
  std::string refusal() const {
    return message_of(Failure::usage, [&] { FolderLock(folder_.path(), option, this_lock_holder(), heartbeat); });
  }

  TemporaryFolder folder_;
  const std::filesystem::path lock_ = folder_.path() / "lock";
};

TEST_F(FolderLockTest, is_taken_kept_and_given_back) {
  {
    FolderLock lock(folder_.path(), option, this_lock_holder(), heartbeat);
    EXPECT_TRUE(std::filesystem::exists(lock_));
    lock.require_held();
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

TEST_F(FolderLockTest, may_be_given_back_before_it_is_destroyed_and_is_not_its_own_after_it) {
  FolderLock lock(folder_.path(), option, this_lock_holder(), heartbeat);
  lock.release();
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
  EXPECT_THROW(lock.require_held(), Error);
}

TEST_F(FolderLockTest, a_second_training_is_refused_while_the_first_one_beats) {
  FolderLock first(folder_.path(), option, stranger(), heartbeat);
  expect_message(refusal(), {folder_.path().string(), "job 17 on elsewhere (process 4711)", "--checkpoints"});
  first.require_held();
}

TEST_F(FolderLockTest, a_holder_that_never_beats_again_loses_it_after_three_beats) {
  leave_lock_of(stranger());
  const Stopwatch watch;
  FolderLock lock(folder_.path(), option, this_lock_holder(), heartbeat);
  EXPECT_GE(watch.seconds(), 0.15);
  lock.require_held();
}

TEST_F(FolderLockTest, a_dead_process_of_this_node_loses_it_at_once) {
  LockHolder dead = this_lock_holder();
  dead.process = ::fork();
  if (dead.process == 0) ::_exit(0);
  ::waitpid(static_cast<pid_t>(dead.process), nullptr, 0);
  leave_lock_of(dead);
  FolderLock lock(folder_.path(), option, this_lock_holder(), 1h);
  lock.require_held();
}

TEST_F(FolderLockTest, a_process_number_that_was_used_again_is_not_mistaken_for_the_holder) {
  LockHolder earlier = this_lock_holder();
  earlier.start = "1@another boot";
  leave_lock_of(earlier);
  FolderLock lock(folder_.path(), option, this_lock_holder(), 1h);
}

TEST_F(FolderLockTest, a_process_of_this_node_that_runs_keeps_it_without_a_beat) {
  leave_lock_of(this_lock_holder());
  const Stopwatch watch;
  EXPECT_NE(message_of(Failure::usage, [&] { FolderLock(folder_.path(), option, this_lock_holder(), 1h); })
                .find(fmt::format("process {}", ::getpid())),
            std::string::npos);
}

TEST_F(FolderLockTest, a_process_of_this_node_that_is_stopped_loses_it_after_three_beats) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::raise(SIGSTOP);
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, WUNTRACED);
  ASSERT_TRUE(WIFSTOPPED(status));
  leave_lock_of(lock_holder_of(child, JobEnvironment()));
  const Stopwatch watch;
  { FolderLock lock(folder_.path(), option, this_lock_holder(), heartbeat); }
  EXPECT_GE(watch.seconds(), 0.15);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

TEST_F(FolderLockTest, a_requeued_job_takes_it_from_its_earlier_run_at_once_and_no_other_job_does) {
  LockHolder earlier = stranger();
  earlier.restarts = 2;
  LockHolder later = this_lock_holder();
  later.job = "17";
  later.restarts = 3;
  EXPECT_EQ(liveness_of(earlier, later), Liveness::gone);
  EXPECT_EQ(liveness_of(later, earlier), Liveness::unknown);
  LockHolder same = earlier;
  same.host = "a third node";
  EXPECT_EQ(liveness_of(earlier, same), Liveness::unknown);
  later.job = "18";
  EXPECT_EQ(liveness_of(earlier, later), Liveness::unknown);
  LockHolder without_slurm = stranger();
  without_slurm.job = "";
  later.job = "";
  EXPECT_EQ(liveness_of(without_slurm, later), Liveness::unknown);
}

TEST_F(FolderLockTest, a_holder_says_of_which_job_it_is) {
  JobEnvironment job;
  EXPECT_EQ(lock_holder_of(::getpid(), job).job, "");
  job.slurm.emplace();
  job.slurm->id = 17;
  job.slurm->restarts = 3;
  const LockHolder holder = lock_holder_of(::getpid(), job);
  EXPECT_EQ(holder.job, "17");
  EXPECT_EQ(holder.restarts, 3);
}

TEST_F(FolderLockTest, in_a_container_of_its_own_a_process_number_says_nothing) {
  LockHolder holder = this_lock_holder();
  holder.start = "1@another boot";
  holder.pid_namespace += 1;
  EXPECT_EQ(liveness_of(holder, this_lock_holder()), Liveness::unknown);
}

TEST_F(FolderLockTest, the_earlier_holder_finds_out_that_it_lost_it) {
  FolderLock first(folder_.path(), option, this_lock_holder(), heartbeat);
  leave_lock_of(stranger());
  expect_error(Failure::out_of_step, {lock_.string(), "17"}, [&] { first.require_held(); });
  std::filesystem::remove(lock_);
  expect_error(Failure::out_of_step, {lock_.string()}, [&] { first.require_held(); });
  std::ofstream(lock_) << "not a lock";
  expect_error(Failure::out_of_step, {lock_.string()}, [&] { first.require_held(); });
}

TEST_F(FolderLockTest, it_does_not_remove_a_lock_that_is_anothers) {
  {
    FolderLock first(folder_.path(), option, this_lock_holder(), heartbeat);
    leave_lock_of(stranger());
  }
  EXPECT_TRUE(std::filesystem::exists(lock_));
}

// What a training wrote into a folder that somebody had removed was lost, the model at its end included.
TEST_F(FolderLockTest, a_folder_that_was_removed_is_made_again_with_its_lock) {
  const std::filesystem::path inner = folder_.path() / "runs" / "a";
  FolderLock lock(inner, option, this_lock_holder(), heartbeat);
  for (const std::filesystem::path& removed : {inner, inner.parent_path()}) {
    std::filesystem::remove_all(removed);
    testing::internal::CaptureStderr();
    lock.require_held();
    EXPECT_NE(testing::internal::GetCapturedStderr().find("'" + inner.string() + "'"), std::string::npos);
    EXPECT_THROW(FolderLock(inner, option, stranger(), heartbeat), Error) << "the new lock beats too";
    lock.require_held();
  }
}

TEST_F(FolderLockTest, a_folder_that_was_removed_and_is_anothers_by_now_is_lost) {
  const std::filesystem::path inner = folder_.path() / "inner";
  FolderLock lock(inner, option, this_lock_holder(), heartbeat);
  std::filesystem::remove_all(inner);
  FolderLock other(inner, option, stranger(), heartbeat);
  expect_error(Failure::out_of_step, {(inner / "lock").string(), "job 17 on elsewhere"}, [&] { lock.require_held(); });
  other.require_held();
}

// A finished run that was given the name of a folder in use had its results overwritten.
TEST_F(FolderLockTest, what_took_the_name_of_its_folder_is_left_alone) {
  const std::filesystem::path inner = folder_.path() / "inner";
  const std::filesystem::path elsewhere = folder_.path() / "elsewhere";
  FolderLock lock(inner, option, this_lock_holder(), heartbeat);
  std::filesystem::rename(inner, elsewhere);
  std::filesystem::create_directory(inner);
  std::ofstream(inner / "model.h5") << "another's";
  expect_error(Failure::out_of_step, {"'" + inner.string() + "'"}, [&] { lock.require_held(); });
  EXPECT_FALSE(std::filesystem::exists(inner / "lock"));
  std::filesystem::remove_all(inner);
  std::filesystem::create_directory_symlink(folder_.path(), inner);
  expect_error(Failure::out_of_step, {"'" + inner.string() + "'"}, [&] { lock.require_held(); });
  std::filesystem::remove(inner);
  lock.require_held();
}

TEST_F(FolderLockTest, the_outer_of_two_folders_that_were_removed_is_made_first) {
  const auto outer = std::make_shared<FolderLock>(folder_.path() / "run", option, this_lock_holder(), heartbeat);
  FolderLock inner(folder_.path() / "run" / "checkpoints", option, this_lock_holder(), heartbeat);
  inner.lie_within(outer);
  std::filesystem::remove_all(folder_.path() / "run");
  inner.require_held();
  outer->require_held();
}

TEST_F(FolderLockTest, a_folder_that_was_removed_and_cannot_be_made_again_is_told) {
  const std::filesystem::path parent = folder_.path() / "runs";
  FolderLock lock(parent / "a", option, this_lock_holder(), heartbeat);
  std::filesystem::remove_all(parent);
  std::ofstream(parent) << "in the way";
  expect_error(Failure::usage, {"--checkpoints"}, [&] { lock.require_held(); });
}

// It left an empty file, which made the next start wait for three heartbeats of nobody.
TEST_F(FolderLockTest, a_lease_that_finds_no_room_leaves_nothing) {
  std::string message;
  {
    const NoRoomBeyond limit(0);
    message = refusal();
  }
  expect_message(message, {"--checkpoints", lock_.string()});
  EXPECT_FALSE(std::filesystem::exists(lock_));
}

TEST_F(FolderLockTest, makes_its_folder_and_names_the_option_where_it_cannot) {
  std::ofstream(folder_.path() / "file") << "in the way";
  const std::filesystem::path inside = folder_.path() / "file" / "run";
  expect_error(Failure::usage, {"--output", inside.string()}, [&] { FolderLock(inside, "--output"); });
}

TEST_F(FolderLockTest, a_file_of_that_name_that_is_no_lock_stays) {
  std::ofstream(lock_) << "package versions\n";
  expect_message(refusal(), {"--checkpoints", lock_.string()});
  EXPECT_EQ(read_file(lock_, 100), "package versions\n");
}

TEST_F(FolderLockTest, a_pipe_of_that_name_stays) {
  ASSERT_EQ(::mkfifo(lock_.c_str(), 0600), 0);
  expect_message(refusal(), {lock_.string()});
  EXPECT_TRUE(std::filesystem::is_fifo(lock_));
}

TEST_F(FolderLockTest, rubbish_in_the_file_is_a_holder_that_says_nothing) {
  for (const std::string& text :
       {std::string(), std::string("{}"), std::string("{\"job\": 3}\n"), std::string(9, '\0')}) {
    std::ofstream(lock_) << text;
    FolderLock lock(folder_.path(), option, this_lock_holder(), heartbeat);
    lock.require_held();
  }
}

TEST_F(FolderLockTest, of_many_that_come_at_once_one_gets_it) {
  leave_lock_of(stranger());
  std::vector<std::unique_ptr<FolderLock>> locks(6);
  std::vector<std::thread> threads;
  for (std::unique_ptr<FolderLock>& lock : locks) {
    threads.emplace_back([&] {
      try {
        lock = std::make_unique<FolderLock>(folder_.path(), option, this_lock_holder(), 1s);
      } catch (const Error&) {
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  int holders = 0;
  for (const std::unique_ptr<FolderLock>& lock : locks) {
    if (lock != nullptr && message_of(Failure::out_of_step, [&] { lock->require_held(); }) == "no error") ++holders;
  }
  EXPECT_EQ(holders, 1);
}

// Whoever was asked to stop waited for half a minute, and was killed by the second signal.
TEST_F(FolderLockTest, waiting_for_it_can_be_ended_and_leaves_it_to_its_holder) {
  struct Enough {};
  const LockHolder holder = stranger();
  leave_lock_of(holder);
  const auto start = std::chrono::steady_clock::now();
  int looks = 0;
  const auto look = [&] {
    if (++looks == 2) throw Enough();
  };
  EXPECT_THROW(FolderLock(folder_.path(), option, this_lock_holder(), FolderLock::default_heartbeat, look), Enough);
  EXPECT_LT(std::chrono::steady_clock::now() - start, 5s);
  EXPECT_EQ(read_file(lock_, 1 << 16), lock_holder_text(holder) + "\n00000000000000000000\n");
}

}  // namespace lockstep::folder_lock_test
