#include "base/helper_process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <sstream>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/io/descriptor.hpp"
#include "base/io/file.hpp"
#include "base/log.hpp"
#include "base/text/number.hpp"

namespace lockstep {
namespace {

constexpr rlim_t max_open_files = 32;

// Uses only functions that are safe between fork() and exec().
[[noreturn]] void become_helper(int output, pid_t parent, char* const* arguments) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);  // the parent ended before PR_SET_PDEATHSIG took effect
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::dup2(output, STDOUT_FILENO);
  ::close(STDIN_FILENO);
  ::close(STDERR_FILENO);  // libraries print complaints there
  ::execv("/proc/self/exe", arguments);
  ::_exit(127);
}

// Reads the available output. Returns false at its end, or beyond the limit.
bool add_output(int output, const HelperLimits& limits, HelperResult& result) {
  std::array<char, 4096> room{};
  const ssize_t got = ::read(output, room.data(), room.size());
  if (got < 0) return errno == EINTR;
  result.output.append(room.data(), static_cast<std::size_t>(got));
  result.printed_too_much = result.output.size() > limits.output;
  return got > 0 && !result.printed_too_much;
}

void collect(pid_t helper, HelperResult& result) {
  int status = 0;
  while (::waitpid(helper, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
  if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
}

std::size_t memory_in_use() {
  std::istringstream pages(read_live_file("/proc/self/statm", 4096));
  std::string size;
  pages >> size;
  return parse_number<std::size_t>(size, {0, std::size_t{1} << 50}).value_or(0) *
         static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

void limit(int resource, rlim_t most) {
  rlimit now{};
  ::getrlimit(static_cast<__rlimit_resource>(resource), &now);
  now.rlim_max = std::min(now.rlim_max, most);
  now.rlim_cur = std::min(now.rlim_cur, now.rlim_max);
  ::setrlimit(static_cast<__rlimit_resource>(resource), &now);
}

}  // namespace

HelperResult run_helper(const std::vector<std::string>& arguments, const HelperLimits& limits) {
  std::array<int, 2> ends{};
  const bool is_made = ::pipe2(ends.data(), O_CLOEXEC) == 0;
  require(is_made, Failure::other, "cannot create a pipe: {}. Try again.", system_error_message(errno));
  const Descriptor output(ends[0]);
  Descriptor written(ends[1]);
  std::string name = "helper";
  std::vector<char*> pointers{name.data()};
  for (const std::string& argument : arguments) pointers.push_back(const_cast<char*>(argument.c_str()));
  pointers.push_back(nullptr);
  const pid_t parent = ::getpid();
  const pid_t helper = ::fork();
  require(helper >= 0, Failure::other, "cannot start a process: {}. Try again.", system_error_message(errno));
  if (helper == 0) become_helper(written, parent, pointers.data());
  written.close();

  HelperResult result;
  const Stopwatch watch;
  for (bool goes_on = true; goes_on;) {
    const double left = limits.seconds - watch.seconds();
    pollfd waiting{output, POLLIN, 0};
    const int ready = left > 0 ? ::poll(&waiting, 1, static_cast<int>(left * 1000) + 1) : 0;
    result.took_too_long = ready == 0;
    goes_on = ready < 0 ? errno == EINTR : ready > 0 && add_output(output, limits, result);
  }
  if (result.took_too_long || result.printed_too_much) ::kill(helper, SIGKILL);
  collect(helper, result);
  return result;
}

void limit_more_memory(std::size_t bytes) { limit(RLIMIT_AS, memory_in_use() + bytes); }

void confine_helper(const HelperLimits& limits) {
  log::fill_closed_streams();
  limit_more_memory(limits.more_memory);
  limit(RLIMIT_CPU, static_cast<rlim_t>(limits.seconds));
  limit(RLIMIT_NOFILE, max_open_files);
  limit(RLIMIT_FSIZE, 0);
  limit(RLIMIT_CORE, 0);
}

}  // namespace lockstep
