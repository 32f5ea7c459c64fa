// As rounding_in_integers.inl, by the instructions of AVX512_BF16. They take denormal numbers of fp32 for zeros of the same
// sign, whatever the processor is set to (Intel 64 and IA-32 Architectures Software Developer's Manual, VCVTNEPS2BF16).

inline Halves rounded(Floats value) {
  return reinterpret_cast<Halves>(_mm512_cvtneps_pbh(reinterpret_cast<__m512>(value)));
}

inline void store(Floats value, Bf16* address) { store_raw(rounded(value), address); }

// Two vectors as pairs of bf16, lane by lane.
inline void store_pairs(Floats low, Floats high, float* pairs) {
  const Words low_words = __builtin_convertvector(rounded(low), Words);
  store_raw(low_words | __builtin_convertvector(rounded(high), Words) << 16, pairs);
}
