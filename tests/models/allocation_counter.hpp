// How often this program has called malloc and its kin for 64 KiB or more. oneDNN builds an argument list whenever it
// runs a primitive, and its matrix products take 16 KiB to pack into: no caller can prevent either, and tensors are
// larger. Only for programs that link allocation_counter.cpp, which puts itself in front of the C library's functions.
#pragma once

#include <cstdint>

namespace lockstep::testing {

constexpr std::int64_t counted_bytes = 1 << 16;

std::int64_t allocations();

}  // namespace lockstep::testing
