// sum + left.low * right.low + left.high * right.high for words that are pairs of bf16, by AVX512_BF16's VDPBF16PS. The
// instruction defines the order of rounding. Included in a namespace per instruction set, after vectors.inl.
constexpr bool multiplies_pairs = true;

inline Floats add_pair(Floats sum, float left, Floats right) {
  const __m512i pair = _mm512_castps_si512(_mm512_set1_ps(left));
  return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(pair), reinterpret_cast<__m512bh>(right));
}
