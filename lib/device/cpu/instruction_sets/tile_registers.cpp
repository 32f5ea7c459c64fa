#include "device/cpu/instruction_sets/tile_registers.hpp"

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace lockstep::cpu {

bool has_tiles() {
  constexpr unsigned int leaf = 7;  // feature bits are in its EDX (Intel SDM, volume 2A, CPUID)
  constexpr unsigned int products_of_bf16 = 1U << 22;
  constexpr unsigned int tiles = 1U << 24;
  unsigned int eax = 0;
  unsigned int ebx = 0;
  unsigned int ecx = 0;
  unsigned int edx = 0;
  return __get_cpuid_count(leaf, 0, &eax, &ebx, &ecx, &edx) != 0 && (edx & products_of_bf16) != 0 && (edx & tiles) != 0;
}

bool may_use_tiles() {
  constexpr long request_permission = 0x1023;  // ARCH_REQ_XCOMP_PERM of asm/prctl.h, missing in older systems
  constexpr long tile_data = 18;               // number of the state in XCR0
  static const bool is_granted = syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
  return is_granted;
}

}  // namespace lockstep::cpu
