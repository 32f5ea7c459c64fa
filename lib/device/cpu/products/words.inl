// The content of a 32-bit operand word, and how products of such words are added. Included in a namespace per
// instruction set, after the file that defines add_pair and multiplies_pairs.

struct OneFloat {
  static constexpr int values = 1;

  template <typename Vector>
  static Vector add_product(Vector sum, float left, Vector right) {
    return sum + scaled(left, right);
  }
};

struct PairOfBf16 {
  static constexpr int values = 2;

  static Floats add_product(Floats sum, float left, Floats right) { return add_pair(sum, left, right); }
};
