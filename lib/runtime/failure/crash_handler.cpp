#include "runtime/failure/crash_handler.hpp"

#include <unistd.h>

#include <array>
#include <csignal>
#include <cstring>
#include <string_view>

#include "base/log.hpp"
#include "runtime/failure/failure_report.hpp"

namespace lockstep {
namespace {

struct Crash {
  int signal;
  std::string_view sentence;
};
constexpr std::array<Crash, 5> crashes{{
    {SIGSEGV, "crashed: SIGSEGV, invalid memory access (a bug). Please report it."},
    {SIGBUS,
     "crashed: SIGBUS, mapped memory is gone. Check whether a file was truncated while it was read, or /dev/shm is "
     "full."},
    {SIGFPE, "crashed: SIGFPE, invalid integer division (a bug). Please report it."},
    {SIGILL, "crashed: SIGILL, an instruction that this processor lacks. Rebuild on this type of node."},
    {SIGABRT, "crashed: SIGABRT, aborted by itself or a library (a bug). Please report it."},
}};

std::array<char, 320> crash_prefix{};  // "[rank 3, gpu07]  ", formatted before any crash

void print_crash(std::string_view text) {
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
}

void say_and_die(int signal) {
  for (const Crash& crash : crashes) {
    if (crash.signal != signal) continue;
    if (!failure_report::write({1, signal, crash.sentence})) continue;
    print_crash(crash_prefix.data());
    print_crash(crash.sentence);
    print_crash("\n");
  }
  ::raise(signal);  // SA_RESETHAND has restored the default effect
}

}  // namespace

void install_crash_handlers() {
  const std::string text = log::prefix().substr(0, crash_prefix.size() - 3) + "  ";
  std::memcpy(crash_prefix.data(), text.c_str(), text.size() + 1);

  // A stack overflow leaves no room for the handler on the same stack.
  static std::array<char, 64 << 10> memory;
  stack_t stack{};
  stack.ss_sp = memory.data();
  stack.ss_size = memory.size();
  ::sigaltstack(&stack, nullptr);

  struct sigaction action {};
  action.sa_handler = say_and_die;
  action.sa_flags = static_cast<int>(SA_ONSTACK | SA_RESETHAND | SA_NODEFER);
  for (const Crash& crash : crashes) ::sigaction(crash.signal, &action, nullptr);
}

}  // namespace lockstep
