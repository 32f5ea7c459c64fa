#include "runtime/watch/wake.hpp"

#include <sys/eventfd.h>

#include <atomic>
#include <cerrno>
#include <csignal>

namespace lockstep {
namespace {

// An eventfd adds numbers up: each word has digits of its own.
constexpr int digits = 20;
constexpr eventfd_t digit_mask = (eventfd_t{1} << digits) - 1;

constexpr eventfd_t number_of(Wake what) { return eventfd_t{1} << (digits * static_cast<int>(what)); }

std::atomic<int> signal_descriptor = -1;  // a signal handler reaches nothing but globals

void say(Wake what) {
  const int saved_errno = errno;
  ::eventfd_write(signal_descriptor, number_of(what));
  errno = saved_errno;
}

void say_terminate(int) { say(Wake::terminate); }
void say_where(int) { say(Wake::say_where); }

using Handler = void (*)(int);

Handler handler_of(int signal) {
  struct sigaction action {};
  ::sigaction(signal, nullptr, &action);
  return action.sa_handler;
}

void handle(int signal, Handler handler) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  ::sigaction(signal, &action, nullptr);
}

}  // namespace

int make_wake() { return ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); }

void wake(int descriptor, Wake what) { ::eventfd_write(descriptor, number_of(what)); }

Wakes read_wakes(int descriptor) {
  eventfd_t numbers = 0;
  if (::eventfd_read(descriptor, &numbers) != 0) return {};
  const auto said = [&](Wake what) { return (numbers >> (digits * static_cast<int>(what)) & digit_mask) != 0; };
  return {said(Wake::stop), said(Wake::terminate), said(Wake::say_where)};
}

void wake_on_signal(int signal, int descriptor, Wake what) {
  signal_descriptor = descriptor;
  if (handler_of(signal) == SIG_DFL || handler_of(signal) == SIG_IGN)
    handle(signal, what == Wake::terminate ? say_terminate : say_where);
}

void pass_on_terminate() { say(Wake::terminate); }

bool terminate_only_wakes() { return handler_of(SIGTERM) == say_terminate; }

void ignore_wakes() {
  signal_descriptor = -1;
  if (handler_of(SIGTERM) == say_terminate) handle(SIGTERM, SIG_DFL);
  if (handler_of(SIGUSR2) == say_where) handle(SIGUSR2, SIG_IGN);
}

}  // namespace lockstep
