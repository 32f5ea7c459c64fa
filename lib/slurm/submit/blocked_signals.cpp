#include "slurm/submit/blocked_signals.hpp"

#include <array>
#include <utility>

#include "base/process.hpp"

namespace lockstep {
namespace {

constexpr std::array held = {SIGINT, SIGTERM, SIGHUP};

}  // namespace

BlockedSignals::BlockedSignals() {
  sigset_t wanted;
  ::sigemptyset(&wanted);
  for (const int number : held) ::sigaddset(&wanted, number);
  ::sigprocmask(SIG_BLOCK, &wanted, &before_);
}

bool BlockedSignals::has_pending_signal() const {
  sigset_t waiting;
  ::sigpending(&waiting);
  for (const int number : held) {
    if (::sigismember(&waiting, number) == 1) return true;
  }
  return false;
}

void BlockedSignals::release() {
  if (!std::exchange(are_held_, false)) return;
  restore_default_effect(SIGHUP);
  ::sigprocmask(SIG_SETMASK, &before_, nullptr);
}

}  // namespace lockstep
