// Compiled for its instruction set alone, so everything in it, templates included, lives in a namespace of its own: of
// an inline function that two files share, the linker may hand this file's copy to everyone.
#include "device/cpu/products/product_loops.hpp"

namespace lockstep::cpu::baseline {

constexpr std::int64_t lanes = 8;
constexpr int most_vectors = 1;
constexpr std::int64_t tile_rows[most_vectors] = {6};

// Each builds on those before it.
// clang-format off
#include "device/cpu/passes/vectors.inl"
#include "device/cpu/norm/norm_vectors.inl"
#include "device/cpu/products/add_pair.inl"
#include "device/cpu/products/products.inl"
#include "device/cpu/products/product_operands.inl"
#include "device/cpu/products/product_table.inl"
// clang-format on

}  // namespace lockstep::cpu::baseline
