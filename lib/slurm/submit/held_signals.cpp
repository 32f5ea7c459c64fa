#include "slurm/submit/held_signals.hpp"

#include <array>
#include <utility>

namespace lockstep {
namespace {

constexpr std::array held = {SIGINT, SIGTERM, SIGHUP};

}  // namespace

HeldSignals::HeldSignals() {
  sigset_t wanted;
  ::sigemptyset(&wanted);
  for (const int number : held) ::sigaddset(&wanted, number);
  ::sigprocmask(SIG_BLOCK, &wanted, &before_);
}

bool HeldSignals::has_come() const {
  sigset_t waiting;
  ::sigpending(&waiting);
  for (const int number : held) {
    if (::sigismember(&waiting, number) == 1) return true;
  }
  return false;
}

void HeldSignals::release() {
  if (std::exchange(are_held_, false)) ::sigprocmask(SIG_SETMASK, &before_, nullptr);
}

}  // namespace lockstep
