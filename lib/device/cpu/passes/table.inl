// The tables of one instruction set. Included last inside its namespace.

template <typename Storage>
constexpr VectorLoops table = {
    .lanes = lanes,
    .moments = moments<Storage>,
    .normalise = normalise<Storage>,
    .norm_sums = norm_sums<Storage>,
    .norm_gradient = norm_gradient<Storage>,
    .bias_gradient = bias_gradient<Storage>,
    .max_pool = max_pool<Storage>,
    .max_pool_gradient = max_pool_gradient<Storage>,
    .sum_pixels = sum_pixels<Storage>,
    .fill_pixels = fill_pixels<Storage>,
    .subsample = subsample<Storage>,
    .subsample_gradient = subsample_gradient<Storage>,
    .add = add<Storage>,
    .unpack = unpack<Storage>,
    .pack = pack<Storage>,
};

constexpr VectorTables tables = {table<F32>, table<Bf16>};
