#include "runtime/watch/wake.hpp"

#include <sys/eventfd.h>

namespace lockstep {
namespace {

// An eventfd adds the written numbers. Each kind of notification has its own bits.
constexpr int digits = 20;
constexpr eventfd_t digit_mask = (eventfd_t{1} << digits) - 1;

constexpr eventfd_t number_of(Wake what) { return eventfd_t{1} << (digits * static_cast<int>(what)); }

}  // namespace

int make_wake() { return ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); }

void wake(int descriptor, Wake what) { ::eventfd_write(descriptor, number_of(what)); }

Wakes read_wakes(int descriptor) {
  eventfd_t numbers = 0;
  if (::eventfd_read(descriptor, &numbers) != 0) return {};
  const auto said = [&](Wake what) { return (numbers >> (digits * static_cast<int>(what)) & digit_mask) != 0; };
  return {said(Wake::stop), said(Wake::terminate), said(Wake::print_status)};
}

}  // namespace lockstep
