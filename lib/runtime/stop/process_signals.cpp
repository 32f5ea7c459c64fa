#include "runtime/stop/process_signals.hpp"

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <cassert>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <utility>

#include "runtime/watch/wake.hpp"

namespace lockstep {

namespace {

constexpr std::array requests{SIGTERM, SIGUSR1, SIGINT, SIGHUP};
constexpr int nobody = -1;

// A signal handler reaches nothing but globals.
std::atomic<bool> is_owned = false;
std::array<struct sigaction, requests.size()> before;
std::atomic<int> requested = 0;
std::atomic<std::int64_t> requested_ms = 0;
std::atomic<int> woken = nobody;  // a descriptor
std::atomic<bool> terminate_wakes = false;

std::int64_t now_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{1000} * now.tv_sec + now.tv_nsec / 1000000;
}

void say(Wake what) {
  const int saved_errno = errno;
  if (woken != nobody) wake(woken, what);
  errno = saved_errno;
}

void on_request(int signal) {
  constexpr std::int64_t same_request_ms = 1000;
  int none = 0;
  if (signal == SIGTERM && terminate_wakes) say(Wake::terminate);
  if (requested.compare_exchange_strong(none, signal)) {
    requested_ms = now_ms();
  } else if (now_ms() - requested_ms >= same_request_ms) {
    ::signal(signal, SIG_DFL);
    ::raise(signal);
  }
}

void say_terminate(int) { say(Wake::terminate); }
void say_where(int) { say(Wake::say_where); }

using Handler = void (*)(int);

void handle(int signal, Handler handler) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  ::sigaction(signal, &action, nullptr);
}

}  // namespace

ProcessSignals::ProcessSignals(Stopping stopping) : stopping_(stopping) {
  [[maybe_unused]] const bool another = is_owned.exchange(true);
  assert(!another);
  requested = 0;
  for (std::size_t i = 0; i < requests.size(); ++i) ::sigaction(requests[i], nullptr, &before[i]);
  handle(SIGUSR2, SIG_IGN);
  if (stopping_ == Stopping::at_once) return;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const bool is_nohup = requests[i] == SIGHUP && before[i].sa_handler == SIG_IGN;
    if (!is_nohup) handle(requests[i], on_request);
  }
  handle(SIGPIPE, SIG_IGN);
}

ProcessSignals::~ProcessSignals() {
  stop_waking();
  is_owned = false;
  if (is_stop_requested()) return;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (requests[i] != SIGTERM || !ignores_terminate_) ::sigaction(requests[i], &before[i], nullptr);
  }
}

int ProcessSignals::request() const { return requested.load(std::memory_order_relaxed); }

void ProcessSignals::start_waking(int descriptor, WokenBy signals) {
  woken = descriptor;
  handle(SIGUSR2, say_where);
  terminate_wakes = signals == WokenBy::where_and_terminate;
  if (terminate_only_wakes()) handle(SIGTERM, say_terminate);
}

void ProcessSignals::stop_waking() {
  if (terminate_only_wakes()) handle(SIGTERM, SIG_DFL);
  handle(SIGUSR2, SIG_IGN);
  terminate_wakes = false;
  woken = nobody;
}

bool ProcessSignals::terminate_only_wakes() const { return stopping_ == Stopping::at_once && terminate_wakes; }

void ProcessSignals::ignore_terminate() {
  ignores_terminate_ = true;
  handle(SIGTERM, SIG_IGN);
}

void ProcessSignals::ignore_requests() {
  if (stopping_ == Stopping::at_once) return;
  for (const int signal : requests) handle(signal, SIG_IGN);
}

std::string words_of_signal(int number) { return fmt::format("SIG{}", ::sigabbrev_np(number)); }

}  // namespace lockstep
