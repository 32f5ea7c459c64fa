// The table of one instruction set. Included last inside its namespace.

constexpr ProductLoops tables = {
    .lanes = lanes,
    .most_vectors = most_vectors,
    .products = products,
    .pair_products = pair_products,
    .pack_f32 = pack_plane<F32, F32>,
    .pack_bf16 = pack_plane<Bf16, F32>,
    .pack_channel_pairs = pack_plane<Bf16, Bf16>,
    .pack_column_pairs = pack_column_pairs,
    .pair_rows = pair_rows,
    .pack_image = pack_image,
    .narrow = narrow,
    .transpose = transpose,
};
