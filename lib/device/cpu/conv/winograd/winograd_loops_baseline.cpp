// Compiled for its instruction set alone, in a namespace of its own: see vector_loops_baseline.cpp.
#include "device/cpu/conv/winograd/winograd_loops.hpp"

namespace lockstep::cpu::baseline {
namespace {

constexpr std::int64_t lanes = 8;
constexpr std::int64_t register_lanes = 4;

// Sums that fit into the registers beside what they are made of: rows, by the blocks of a panel.
constexpr int product_rows[] = {0, 4, 2};
constexpr int gradient_rows[] = {0, 4, 2, 1};

// Each builds on those before it.
// clang-format off
#include "device/cpu/passes/vectors.inl"
#include "device/cpu/norm/norm_vectors.inl"
#include "device/cpu/conv/winograd/winograd_points.inl"
#include "device/cpu/conv/winograd/winograd_stride2.inl"
#include "device/cpu/conv/winograd/winograd_tiles.inl"
#include "device/cpu/conv/winograd/winograd_weights.inl"
#include "device/cpu/conv/winograd/winograd_products.inl"
#include "device/cpu/conv/winograd/winograd_table.inl"
// clang-format on

}  // namespace

const WinogradLoops& winograd_loops(DType storage, WinogradForm form) {
  return storage == DType::bf16 ? table_of<Bf16>(form) : table_of<F32>(form);
}

}  // namespace lockstep::cpu::baseline
