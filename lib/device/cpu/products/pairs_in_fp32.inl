// sum + left.low * right.low + left.high * right.high for words that are pairs of bf16, in fp32. For instruction sets
// without pair products. Included in a namespace per instruction set, after vectors.inl.
constexpr bool multiplies_pairs = false;

inline Floats add_pair(Floats sum, float left, Floats right) {
  const auto pair = __builtin_bit_cast(std::uint32_t, left);
  const auto pairs = reinterpret_cast<Words>(right);
  constexpr std::uint32_t high = 0xffff0000U;
  sum += scaled(__builtin_bit_cast(float, pair << 16), reinterpret_cast<Floats>(pairs << 16));
  return sum + scaled(__builtin_bit_cast(float, pair& high), reinterpret_cast<Floats>(pairs & high));
}
