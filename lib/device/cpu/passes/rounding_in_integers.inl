// fp32 to bf16 in integer arithmetic: rounds to nearest, ties to even; NaN stays NaN. Included in a namespace per
// instruction set, after vectors.inl.

template <std::int64_t count, typename Vector>
inline Halves upper_halves(Vector pairs) {
  if constexpr (count == 8) {
    return __builtin_shufflevector(pairs, pairs, 1, 3, 5, 7, 9, 11, 13, 15);
  } else {
    return __builtin_convertvector(reinterpret_cast<Words>(pairs) >> 16, Halves);
  }
}

// The result is in the upper halves.
inline Words rounded(Floats value) {
  const auto bits = reinterpret_cast<Words>(value);
  const auto is_nan = reinterpret_cast<Words>(value != value);
  return (bits + 0x7fffU + ((bits >> 16) & 1U)) | is_nan;
}

inline void store(Floats value, Bf16* address) {
  store_raw(upper_halves<lanes>(reinterpret_cast<Pairs>(rounded(value))), address);
}

// Two vectors as pairs of bf16, lane by lane.
inline Floats pairs_of(Floats low, Floats high) {
  return reinterpret_cast<Floats>((rounded(low) >> 16) | (rounded(high) & 0xffff0000U));
}
