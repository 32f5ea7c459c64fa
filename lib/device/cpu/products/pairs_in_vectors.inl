// Products of pairs of bf16 by the same tiles of registers as those of fp32. Included inside a namespace per
// instruction set, after products.inl.
constexpr const int* pair_tile_rows = tile_rows;

void pair_products(const Products& call) { products_of<PairOfBf16, max_vectors>(call); }
