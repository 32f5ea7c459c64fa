// Compiled for its instruction set alone, so everything in it, templates included, lives in a namespace of its own: of
// an inline function that two files share, the linker may hand this file's copy to everyone.
#include "device/cpu/product_loops.hpp"

namespace lockstep::cpu::avx2 {

constexpr std::int64_t lanes = 8;
constexpr int most_vectors = 3;
constexpr std::int64_t tile_rows[most_vectors] = {8, 6, 4};

// Each builds on those before it.
// clang-format off
#include "device/cpu/loops/vectors.inl"
#include "device/cpu/loops/norm_vectors.inl"
#include "device/cpu/kernels/add_pair.inl"
#include "device/cpu/kernels/products.inl"
#include "device/cpu/kernels/product_operands.inl"
#include "device/cpu/kernels/product_table.inl"
// clang-format on

}  // namespace lockstep::cpu::avx2
