// How often this program has called malloc and its kin for so many bytes or more. Only for programs that link
// allocation_counter.cpp, which puts itself in front of the C library's functions.
#pragma once

#include <cstdint>

namespace lockstep::test {

constexpr std::int64_t counted_bytes = 1 << 16;  // tensors are larger; less is bookkeeping

std::int64_t allocations();

}  // namespace lockstep::test
