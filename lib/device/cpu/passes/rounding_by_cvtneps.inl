// Like rounding_in_integers.inl, with the instructions of AVX512_BF16. They flush fp32 denormals to zeros of the same
// sign, in any processor mode (Intel SDM, VCVTNEPS2BF16).

inline Halves rounded(Floats value) {
  return reinterpret_cast<Halves>(_mm512_cvtneps_pbh(reinterpret_cast<__m512>(value)));
}

inline void store(Floats value, Bf16* address) { store_raw(rounded(value), address); }

// Two vectors as pairs of bf16, lane by lane.
inline Floats pairs_of(Floats low, Floats high) {
  const auto all = reinterpret_cast<Pairs>(
      _mm512_cvtne2ps_pbh(reinterpret_cast<__m512>(high), reinterpret_cast<__m512>(low)));
  return reinterpret_cast<Floats>(
      __builtin_shufflevector(all, all, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23, 8, 24, 9, 25, 10, 26, 11,
                              27, 12, 28, 13, 29, 14, 30, 15, 31));
}
