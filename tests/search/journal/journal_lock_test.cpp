#include "search/journal/journal_lock.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <iostream>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "base/io/append.hpp"
#include "base/io/descriptor.hpp"
#include "base/io/file.hpp"
#include "base/log.hpp"
#include "support/messages.hpp"
#include "support/stranger.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::journal_lock_test {

using namespace std::chrono_literals;

class JournalLockTest : public testing::Test {
 protected:
  void leave_lock_of(const LockHolder& holder) const {
    write_file_atomically(file_, lock_holder_text(holder) + "\n1\n");
  }
  bool is_locked() const { return !is_absent(file_); }

  TemporaryFolder folder_;
  const std::filesystem::path file_ = folder_.path() / "search.lock";
};

TEST_F(JournalLockTest, is_taken_and_given_back) {
  {
    const JournalLock lock(folder_.path(), this_lock_holder());
    lock.require_held();
    EXPECT_TRUE(is_locked());
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

TEST_F(JournalLockTest, of_a_dead_process_is_broken_at_once) {
  const pid_t child = ::fork();
  if (child == 0) {
    new JournalLock(folder_.path(), this_lock_holder());  // NOLINT: it is killed while it holds the lock
    ::raise(SIGKILL);
  }
  ::waitpid(child, nullptr, 0);
  ASSERT_TRUE(is_locked());
  const Stopwatch watch;
  JournalLock(folder_.path(), this_lock_holder()).require_held();
  EXPECT_LT(watch.seconds(), 10);
}

TEST_F(JournalLockTest, of_a_silent_stranger_is_broken_after_the_patience) {
  for (const std::string& text : {lock_holder_text(stranger()), std::string(), std::string("{\"tok")}) {
    write_file_atomically(file_, text);
    const Stopwatch watch;
    const JournalLock lock(folder_.path(), this_lock_holder(), 300ms);
    EXPECT_GE(watch.milliseconds(), 300) << text;
  }
}

// A stopped process made the others wait without a word.
TEST_F(JournalLockTest, of_a_silent_stranger_is_told_once) {
  LockHolder silent = stranger();
  silent.job = "17";
  silent.process = 4711;
  leave_lock_of(silent);
  testing::internal::CaptureStderr();
  const JournalLock lock(folder_.path(), this_lock_holder(), 900ms);
  const std::string warning = testing::internal::GetCapturedStderr();
  ASSERT_TRUE(warning.starts_with(log::prefix() + "  ")) << warning;
  expect_message(warning.substr(log::prefix().size() + 2), {"'" + file_.string() + "'", "4711", "elsewhere"});
}

TEST_F(JournalLockTest, a_stranger_that_takes_it_again_and_again_keeps_it) {
  leave_lock_of(stranger());
  std::optional<std::jthread> takes(std::in_place, [&](const std::stop_token& stop) {
    for (int count = 0; !stop.stop_requested(); ++count) {
      write_file_atomically(file_, fmt::format("{}\n{}\n", lock_holder_text(stranger()), count));
      std::this_thread::sleep_for(20ms);
    }
  });
  std::thread ends([&] {
    std::this_thread::sleep_for(900ms);
    takes.reset();
  });
  const Stopwatch watch;
  const JournalLock lock(folder_.path(), this_lock_holder(), 300ms);
  EXPECT_GE(watch.milliseconds(), 900);
  ends.join();
}

TEST_F(JournalLockTest, who_has_lost_it_writes_nothing) {
  auto lock = std::make_unique<JournalLock>(folder_.path(), this_lock_holder(), 60s);
  leave_lock_of(stranger());
  expect_error(Failure::out_of_step, {"search.lock"}, [&] { lock->require_held(); });
  lock.reset();
  EXPECT_TRUE(is_locked());  // another process's lock stays
  std::filesystem::remove(file_);
  const JournalLock late(folder_.path(), this_lock_holder(), 100ms);
  std::this_thread::sleep_for(60ms);  // longer than half of the patience
  expect_error(Failure::out_of_step, {"search.lock"}, [&] { late.require_held(); });
}

// Each process counts the lines of a file and appends the next number, under the lock, until it is killed at any
// moment. Without exclusion, two processes would append the same number. Ends after 40 kills and 20 lines.
TEST_F(JournalLockTest, excludes_processes_that_are_killed_at_any_moment) {
  const std::filesystem::path counted = folder_.path() / "counted";
  const Descriptor file(create_new_file(counted.c_str()));
  ASSERT_EQ(::fcntl(file, F_SETFL, O_APPEND), 0);
  const auto count_for_ever = [&] {
    for (;;) {
      const JournalLock lock(folder_.path(), this_lock_holder());
      const std::string text = read_file(counted, 1 << 20);
      std::this_thread::sleep_for(200us);
      try {
        lock.require_held();
      } catch (const Error& error) {
        if (error.failure() != Failure::out_of_step) throw;
        continue;  // a third process created a lock while a moved one was put back
      }
      if (!append_whole(file, fmt::format("{}\n", std::ranges::count(text, '\n') + 1))) ::_exit(1);
    }
  };
  std::vector<pid_t> children;
  const auto start = [&] {
    const pid_t child = ::fork();
    if (child != 0) return children.push_back(child);
    try {
      count_for_ever();
    } catch (const std::exception& error) {
      std::cerr << error.what() << std::endl;
      ::_exit(1);
    }
  };
  const auto end_first = [&] {
    ::kill(children.front(), SIGKILL);
    int status = 0;
    ::waitpid(children.front(), &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status));  // it did not end with an error
    children.erase(children.begin());
  };
  constexpr int processes = 3, kills = 40;
  constexpr std::uintmax_t bytes_of_20_lines = 9 * 2 + 11 * 3;
  for (int index = 0; index < processes; ++index) start();
  for (int kill = 0; kill < kills; ++kill) {
    std::this_thread::sleep_for(std::chrono::microseconds(1000 + 997 * kill % 30000));
    end_first();
    start();
  }
  while (std::filesystem::file_size(counted) < bytes_of_20_lines) std::this_thread::sleep_for(1ms);
  while (!children.empty()) end_first();
  std::string expected;
  const std::string text = read_file(counted, 1 << 20);
  for (std::ptrdiff_t line = 1; line <= std::ranges::count(text, '\n'); ++line) expected += fmt::format("{}\n", line);
  EXPECT_EQ(text, expected);
}

}  // namespace lockstep::journal_lock_test
