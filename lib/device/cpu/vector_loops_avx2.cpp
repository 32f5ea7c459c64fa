// Compiled for its instruction set alone, so everything in it, templates included, lives in a namespace of its own: of
// an inline function that two files share, the linker may hand this file's copy to everyone.
#include "device/cpu/vector_loops.hpp"

namespace lockstep::cpu::avx2 {

constexpr std::int64_t lanes = 8;

// Each builds on those before it.
// clang-format off
#include "device/cpu/loops/vectors.inl"
#include "device/cpu/loops/norm_vectors.inl"
#include "device/cpu/loops/norm.inl"
#include "device/cpu/loops/pool.inl"
#include "device/cpu/loops/shape.inl"
#include "device/cpu/loops/table.inl"
// clang-format on

}  // namespace lockstep::cpu::avx2
