// AMX's tile registers. Linux saves them for processes that have asked for it, and refuses it to those whose signal
// stacks would not hold them (Documentation/arch/x86/xstate.rst).
#pragma once

namespace lockstep::cpu {

// Whether the processor has them, and multiplies bf16 in them. Not every compiler's __builtin_cpu_supports knows (Clang
// 16).
bool has_tiles();

// Asks for them, once for all threads. Only on processors that have them.
bool may_use_tiles();

}  // namespace lockstep::cpu
