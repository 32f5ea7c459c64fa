// Passes over flat arrays that the convolutions need, on all threads of the rank.
#pragma once

#include <cstdint>

namespace lockstep::cpu {

void widen(const std::uint16_t* bf16, std::int64_t count, float* values);   // exact
void narrow(const float* values, std::int64_t count, std::uint16_t* bf16);  // to nearest, ties to even
void add_to(const float* values, std::int64_t count, float* sums);          // sums += values

}  // namespace lockstep::cpu
