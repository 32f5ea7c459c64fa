// Products of bf16 pairs by the same register tiles as fp32. Included in a namespace per instruction set, after
// products.inl.
constexpr const int* pair_tile_rows = tile_rows;

void pair_products(const Products& call) { products_of<PairOfBf16, max_vectors>(call); }
