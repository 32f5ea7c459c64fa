#include "runtime/watch/process_end.hpp"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "base/io/descriptor.hpp"

namespace lockstep::process_end_test {

// Ends by `signal`, or with `code` if that is 0.
pid_t start_process(int signal, int code) {
  const pid_t process = ::fork();
  if (process != 0) return process;
  if (signal != 0) ::kill(::getpid(), signal);
  ::_exit(code);
}

void wait_for_end(pid_t process) {
  siginfo_t ignored{};
  ::waitid(P_PID, static_cast<id_t>(process), &ignored, WEXITED | WNOWAIT);
}

TEST(ProcessEnd, a_process_that_nobody_collected_shows_how_it_ended) {
  for (const int signal : {0, SIGKILL, SIGTERM}) {
    const pid_t process = start_process(signal, 65);
    wait_for_end(process);
    const std::optional<int> seen = status_of_ended(process, -1);
    int status = 0;
    ASSERT_EQ(::waitpid(process, &status, 0), process);
    EXPECT_EQ(seen, status);
  }
}

TEST(ProcessEnd, a_collected_process_shows_it_through_its_descriptor_or_not_at_all) {
  const pid_t process = start_process(SIGKILL, 0);
  const Descriptor pidfd(static_cast<int>(::syscall(SYS_pidfd_open, process, 0)));
  int status = 0;
  ASSERT_EQ(::waitpid(process, &status, 0), process);
  const std::optional<int> seen = status_of_ended(process, pidfd);
  if (!seen) GTEST_SKIP() << "this kernel forgets (before 6.15)";
  EXPECT_EQ(seen, status);
  EXPECT_EQ(status_of_ended(process, -1), std::nullopt);
}

TEST(ProcessEnd, a_running_process_has_no_end) {
  const Descriptor pidfd(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
  EXPECT_EQ(status_of_ended(::getpid(), pidfd), std::nullopt);
}

}  // namespace lockstep::process_end_test
