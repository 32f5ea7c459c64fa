// AMX tile registers. Linux saves them for processes that requested it. It refuses processes whose signal stacks are
// too small for them (Documentation/arch/x86/xstate.rst).
#pragma once

namespace lockstep::cpu {

// Whether the processor has them and multiplies bf16 in them. Some compilers' __builtin_cpu_supports do not know them
// (Clang 16).
bool has_tiles();

// Requests permission to use them, once for all threads. Only for processors that have them.
bool may_use_tiles();

}  // namespace lockstep::cpu
