// Compiled for its instruction set alone, so everything in it, templates included, lives in a namespace of its own: of
// an inline function that two files share, the linker may hand this file's copy to everyone.
#include "device/cpu/passes/vector_loops.hpp"

namespace lockstep::cpu::avx512 {

constexpr std::int64_t lanes = 16;

// Each builds on those before it.
// clang-format off
#include "device/cpu/passes/vectors.inl"
#include "device/cpu/norm/norm_vectors.inl"
#include "device/cpu/norm/norm.inl"
#include "device/cpu/passes/pool.inl"
#include "device/cpu/passes/shape.inl"
#include "device/cpu/passes/table.inl"
// clang-format on

}  // namespace lockstep::cpu::avx512
