// The Winograd table of one instruction set. Included last inside its namespace.

template <typename Storage>
constexpr WinogradLoops winograd_table = {
    .lanes = lanes,
    .transform_windows = transform_windows<Storage>,
    .transform_gradient = transform_gradient<Storage>,
    .transform_outputs = transform_outputs<Storage>,
    .transform_weights = transform_weights,
    .finish_gradient = finish_gradient,
    .multiply = multiply,
    .multiply_gradient = multiply_gradient,
};
