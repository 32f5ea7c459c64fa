#include "runtime/stop/process_signals.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cassert>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <string_view>
#include <utility>

#include "base/process.hpp"
#include "runtime/watch/wake.hpp"

namespace lockstep {

namespace {

constexpr std::array requests{SIGTERM, SIGUSR1, SIGINT, SIGHUP};
constexpr std::array handled{SIGTERM, SIGUSR1, SIGINT, SIGHUP, SIGCONT};
constexpr int nobody = -1;

// Global, because a signal handler can reach only globals.
std::atomic<bool> is_owned = false;
std::array<struct sigaction, handled.size()> before;
std::atomic<int> requested = 0;
std::atomic<std::int64_t> requested_ms = 0;
std::atomic<int> woken = nobody;  // the descriptor to wake
std::atomic<bool> terminate_wakes = false;
std::atomic<std::uint64_t> terminate_received = 0;  // count and sender, 32 bits each
std::atomic<std::uint64_t> proceed_received = 0;
std::array<char, 320> spoken_prefix{};  // empty if this process prints no message

void note(std::atomic<std::uint64_t>& received, const siginfo_t* info) {
  const bool has_sender = info->si_code == SI_USER || info->si_code == SI_TKILL || info->si_code == SI_QUEUE;
  const auto sender = static_cast<std::uint32_t>(has_sender ? info->si_pid : 0);
  received = ((received >> 32U) + 1) << 32U | sender;
}

ProcessSignals::Received received_in(const std::atomic<std::uint64_t>& received) {
  const std::uint64_t now = received;
  return {static_cast<std::uint32_t>(now >> 32U), static_cast<int>(now & 0xffffffffU)};
}

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

void print(std::string_view text) {
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
}

void say_ended_at_once() {
  if (spoken_prefix[0] == '\0') return;
  print(spoken_prefix.data());
  print("  ended immediately by a second stop request. The same command resumes from the newest checkpoint.\n");
}

void on_request(int signal, siginfo_t* info, void*) {
  constexpr std::int64_t same_request_ms = 1000;
  int none = 0;
  if (signal == SIGTERM) note(terminate_received, info);
  if (signal == SIGTERM && terminate_wakes) say(Wake::terminate);
  if (requested.compare_exchange_strong(none, signal)) {
    requested_ms = now_ms();
  } else if (now_ms() - requested_ms >= same_request_ms) {
    say_ended_at_once();
    ::signal(signal, SIG_DFL);
    ::raise(signal);
  }
}

void on_proceed(int, siginfo_t* info, void*) { note(proceed_received, info); }

void say_terminate(int) { say(Wake::terminate); }
void print_status(int) { say(Wake::print_status); }

using Handler = void (*)(int);

void handle(int signal, Handler handler) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  ::sigaction(signal, &action, nullptr);
}

void handle_with_sender(int signal, void (*handler)(int, siginfo_t*, void*)) {
  struct sigaction action {};
  action.sa_sigaction = handler;
  action.sa_flags = static_cast<int>(SA_RESTART) | SA_SIGINFO;
  ::sigaction(signal, &action, nullptr);
}

}  // namespace

ProcessSignals::ProcessSignals(Stopping stopping) : stopping_(stopping) {
  [[maybe_unused]] const bool another = is_owned.exchange(true);
  assert(!another);
  requested = 0;
  terminate_received = 0;
  proceed_received = 0;
  spoken_prefix = {};
  for (std::size_t i = 0; i < handled.size(); ++i) ::sigaction(handled[i], nullptr, &before[i]);
  handle(SIGUSR2, SIG_IGN);
  if (stopping_ == Stopping::immediate) {
    restore_default_effect(SIGHUP);
    return;
  }
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const bool is_nohup = requests[i] == SIGHUP && before[i].sa_handler == SIG_IGN;
    if (!is_nohup) handle_with_sender(requests[i], on_request);
  }
  handle_with_sender(SIGCONT, on_proceed);
  handle(SIGPIPE, SIG_IGN);
}

ProcessSignals::~ProcessSignals() {
  stop_waking();
  is_owned = false;
  if (is_stop_requested()) return;
  for (std::size_t i = 0; i < handled.size(); ++i) {
    if (handled[i] != SIGTERM || !ignores_terminate_) ::sigaction(handled[i], &before[i], nullptr);
  }
}

int ProcessSignals::request() const { return requested.load(std::memory_order_relaxed); }

ProcessSignals::Received ProcessSignals::terminate() const { return received_in(terminate_received); }
ProcessSignals::Received ProcessSignals::proceed() const { return received_in(proceed_received); }

void ProcessSignals::set_message_prefix(std::string_view prefix) {
  spoken_prefix = {};
  prefix.copy(spoken_prefix.data(), spoken_prefix.size() - 1);
}

void ProcessSignals::start_waking(int descriptor, WakingSignals signals) {
  woken = descriptor;
  handle(SIGUSR2, print_status);
  terminate_wakes = signals == WakingSignals::print_status_and_terminate;
  if (terminate_only_wakes()) handle(SIGTERM, say_terminate);
}

void ProcessSignals::stop_waking() {
  if (terminate_only_wakes()) handle(SIGTERM, SIG_DFL);
  handle(SIGUSR2, SIG_IGN);
  terminate_wakes = false;
  woken = nobody;
}

bool ProcessSignals::terminate_only_wakes() const { return stopping_ == Stopping::immediate && terminate_wakes; }

void ProcessSignals::ignore_terminate() {
  ignores_terminate_ = true;
  handle(SIGTERM, SIG_IGN);
}

void ProcessSignals::ignore_requests() {
  if (stopping_ == Stopping::immediate) return;
  for (const int signal : requests) handle(signal, SIG_IGN);
}

std::string signal_name(int number) {
  const char* const name = ::sigabbrev_np(number);
  return name == nullptr ? fmt::format("signal {}", number) : fmt::format("SIG{}", name);
}

}  // namespace lockstep
