#include "base/process.hpp"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace lockstep::process_test {

pid_t start_waiting_process() {
  const pid_t process = ::fork();
  if (process == 0) {
    ::prctl(PR_SET_NAME, ") Z 7 (");  // taken for the fields after it, this says ended
    ::raise(SIGSTOP);
    ::_exit(3);
  }
  int status = 0;
  ::waitpid(process, &status, WUNTRACED);
  return process;
}

TEST(ProcessStat, shows_what_a_process_does_from_start_to_end) {
  const pid_t process = start_waiting_process();
  const std::optional<ProcessStat> stopped = process_stat(process);
  ::kill(process, SIGCONT);
  siginfo_t ignored{};
  ::waitid(P_PID, static_cast<id_t>(process), &ignored, WEXITED | WNOWAIT);
  const std::optional<ProcessStat> ended = process_stat(process);
  int status = 0;
  ASSERT_EQ(::waitpid(process, &status, 0), process);

  ASSERT_TRUE(stopped && ended);
  EXPECT_EQ(stopped->state, 'T');
  EXPECT_FALSE(stopped->has_ended());
  EXPECT_EQ(stopped->end_status, std::nullopt);
  EXPECT_EQ(ended->state, 'Z');
  EXPECT_TRUE(ended->has_ended());
  EXPECT_EQ(ended->end_status, status);
  EXPECT_GT(stopped->start_ticks, 0U);
  EXPECT_EQ(ended->start_ticks, stopped->start_ticks);
  EXPECT_FALSE(process_stat(process)) << "collected, and still there";
}

TEST(ProcessStat, a_process_that_started_later_shows_it) {
  const std::optional<ProcessStat> own = process_stat(::getpid());
  const std::optional<ProcessStat> parent = process_stat(::getppid());
  ASSERT_TRUE(own && parent);
  EXPECT_EQ(own->state, 'R');
  EXPECT_GE(own->start_ticks, parent->start_ticks);
}

TEST(ProcessStat, numbers_of_processes_belong_to_something) {
  EXPECT_EQ(boot_id().size(), 36U) << boot_id();  // a UUID
  EXPECT_GT(pid_namespace(), 0);
}

TEST(RestoreDefaultEffect, takes_away_handlers_but_not_nohup) {
  const auto handler_of_hangup = [] {
    struct sigaction now {};
    ::sigaction(SIGHUP, nullptr, &now);
    return now.sa_handler;
  };
  const auto before = handler_of_hangup();
  ::signal(SIGHUP, [](int) {});
  restore_default_effect(SIGHUP);
  EXPECT_EQ(handler_of_hangup(), SIG_DFL);
  ::signal(SIGHUP, SIG_IGN);
  restore_default_effect(SIGHUP);
  EXPECT_EQ(handler_of_hangup(), SIG_IGN);
  ::signal(SIGHUP, before);
}

}  // namespace lockstep::process_test
