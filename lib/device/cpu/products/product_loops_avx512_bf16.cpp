// Compiled for its instruction set alone, so everything in it, templates included, lives in a namespace of its own: of
// an inline function that two files share, the linker may hand this file's copy to everyone.
#include <immintrin.h>

#include "device/cpu/products/product_loops.hpp"

namespace lockstep::cpu::avx512_bf16 {

constexpr std::int64_t lanes = 16;
constexpr int most_vectors = 4;
constexpr std::int64_t tile_rows[most_vectors] = {14, 12, 8, 6};

// Each builds on those before it.
// clang-format off
#include "device/cpu/passes/vectors.inl"
#include "device/cpu/norm/norm_vectors.inl"

inline Floats add_pair(Floats sum, float left, Floats right) {
  const __m512i pair = _mm512_castps_si512(_mm512_set1_ps(left));
  return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(pair), reinterpret_cast<__m512bh>(right));
}

#include "device/cpu/products/products.inl"
#include "device/cpu/products/product_operands.inl"
#include "device/cpu/products/product_table.inl"
// clang-format on

}  // namespace lockstep::cpu::avx512_bf16
