// Calls that set errno.
#pragma once

#include <cerrno>
#include <system_error>

namespace lockstep {

// Throws std::system_error with the value of errno, unless the call has succeeded.
inline void check_errno(bool has_succeeded) {
  if (!has_succeeded) throw std::system_error(errno, std::generic_category());
}

}  // namespace lockstep
