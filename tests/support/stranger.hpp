// A process of another node, for locks.
#pragma once

#include "run/lock_holder.hpp"

namespace lockstep {

// On another node, so that nothing is known of its process.
inline LockHolder stranger() {
  LockHolder holder = this_lock_holder();
  holder.host = "elsewhere";
  return holder;
}

}  // namespace lockstep
