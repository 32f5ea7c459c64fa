#include "device/cpu/instruction_sets/tile_registers.hpp"

#include <sys/syscall.h>
#include <unistd.h>

namespace lockstep::cpu {

bool may_use_tiles() {
  constexpr long request_permission = 0x1023;  // ARCH_REQ_XCOMP_PERM of asm/prctl.h, which older systems lack
  constexpr long tile_data = 18;               // the state's number in XCR0
  static const bool is_granted = syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
  return is_granted;
}

}  // namespace lockstep::cpu
