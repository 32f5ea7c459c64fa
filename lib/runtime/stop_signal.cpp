#include "runtime/stop_signal.hpp"

#include <fmt/format.h>

#include <atomic>
#include <cassert>
#include <cstdint>
#include <cstring>
#include <ctime>

#include "runtime/wake.hpp"

namespace lockstep {

namespace {

// A signal handler reaches nothing but globals.
std::atomic<int> received = 0;
std::atomic<std::int64_t> received_ms = 0;

std::int64_t now_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{1000} * now.tv_sec + now.tv_nsec / 1000000;
}

void on_signal(int signal) {
  constexpr std::int64_t same_request_ms = 1000;
  int none = 0;
  if (signal == SIGTERM) pass_on_terminate();
  if (received.compare_exchange_strong(none, signal)) {
    received_ms = now_ms();
  } else if (now_ms() - received_ms >= same_request_ms) {
    ::signal(signal, SIG_DFL);
    ::raise(signal);
  }
}

void handle(int signal, struct sigaction& before) {
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  ::sigaction(signal, &action, &before);
}

}  // namespace

StopSignal::StopSignal() {
  received = 0;
  handle(SIGTERM, before_terminate_);
  handle(SIGUSR1, before_user_);
}

StopSignal::~StopSignal() {
  if (is_requested()) return;
  ::sigaction(SIGTERM, &before_terminate_, nullptr);
  ::sigaction(SIGUSR1, &before_user_, nullptr);
}

bool StopSignal::is_requested() const { return received.load(std::memory_order_relaxed) != 0; }

std::string StopSignal::words() const { return fmt::format("SIG{}", ::sigabbrev_np(received)); }

}  // namespace lockstep
