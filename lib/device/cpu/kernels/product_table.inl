// The table of one instruction set. Included last inside its namespace.

constexpr ProductLoops product_table = {
    .lanes = lanes,
    .most_vectors = most_vectors,
    .products = products,
    .pack_f32 = pack_plane<F32>,
    .pack_bf16 = pack_plane<Bf16>,
    .pack_image = pack_image,
    .narrow = narrow,
    .transpose = transpose,
};

const ProductLoops& product_loops() { return product_table; }
