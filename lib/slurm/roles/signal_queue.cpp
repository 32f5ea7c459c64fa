#include "slurm/roles/signal_queue.hpp"

#include <sys/signalfd.h>
#include <unistd.h>

#include <csignal>

namespace lockstep {
namespace {

bool is_ignored(int number) {
  struct sigaction action {};
  return ::sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

int make_queue() {
  sigset_t wanted;
  ::sigemptyset(&wanted);
  for (const int number : {SIGUSR1, SIGTERM, SIGINT, SIGCHLD}) ::sigaddset(&wanted, number);
  // A blocked signal is delivered here even if it is ignored.
  if (!is_ignored(SIGHUP)) ::sigaddset(&wanted, SIGHUP);
  ::sigprocmask(SIG_BLOCK, &wanted, nullptr);
  return ::signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
}

}  // namespace

SignalQueue::SignalQueue() : queue_(make_queue()) {}

std::optional<Signal> SignalQueue::next() {
  signalfd_siginfo info{};
  if (::read(queue_, &info, sizeof info) != sizeof info) return std::nullopt;
  return Signal{static_cast<int>(info.ssi_signo), info.ssi_pid};
}

}  // namespace lockstep
