#include "runtime/stop/stop_signal.hpp"

#include <fmt/format.h>

#include <atomic>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <ctime>

#include "base/error.hpp"
#include "base/log.hpp"
#include "runtime/stop/ending.hpp"
#include "runtime/watch/wake.hpp"

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

std::string words_of_signal(int number) { return fmt::format("SIG{}", ::sigabbrev_np(number)); }

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
  for (std::size_t i = 0; i < requests.size(); ++i) handle(requests[i], before_[i]);
}

StopSignal::~StopSignal() {
  if (is_requested()) return;
  for (std::size_t i = 0; i < requests.size(); ++i) ::sigaction(requests[i], &before_[i], nullptr);
}

int StopSignal::number() const { return received.load(std::memory_order_relaxed); }

std::string StopSignal::words() const { return words_of_signal(number()); }

void StartStops::stop_if_asked(const std::string& outcome) const {
  const int asked = static_cast<int>(std::lround(world_.max(signal_ == nullptr ? 0 : signal_->number())));
  if (asked == 0) return;
  const std::string sentence = fmt::format("stopped before the first step ({}): {}", words_of_signal(asked), outcome);
  log::info(sentence);
  throw Stopped{{static_cast<int>(Failure::stopped_early), sentence}};
}

void StartStops::wait_for_rank_0(const Work& work) const {
  const auto waits_on = [this](double rank_0_waits) { return world_.max(rank_0_waits) > 0; };
  if (world_.rank() != 0) {
    while (waits_on(0)) stop_if_asked();
    return;
  }
  work([&] {
    waits_on(1);
    stop_if_asked();
  });
  waits_on(0);
}

}  // namespace lockstep
