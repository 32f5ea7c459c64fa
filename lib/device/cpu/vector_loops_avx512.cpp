// Compiled for its instruction set alone, so everything in it, templates included, lives in a namespace of its own: of
// an inline function that two files share, the linker may hand this file's copy to everyone.
#include "device/cpu/vector_loops.hpp"

namespace lockstep::cpu::avx512 {

constexpr std::int64_t lanes = 16;

#include "device/cpu/loops/norm.inl"
#include "device/cpu/loops/pool.inl"
#include "device/cpu/loops/shape.inl"
#include "device/cpu/loops/table.inl"
#include "device/cpu/loops/vectors.inl"

}  // namespace lockstep::cpu::avx512
