// The Winograd tables of one instruction set. Included last inside its namespace.

template <typename Form, typename Storage>
constexpr WinogradLoops winograd_table = {
    .lanes = lanes,
    .points = std::int64_t{Form::Window::to} * Form::Window::to,
    .tile_size = Form::Output::to,
    .transform_windows = transform_windows<Form, Storage>,
    .transform_gradient = transform_gradient<Form, Storage>,
    .transform_outputs = transform_outputs<Form, Storage>,
    .transform_weights = transform_weights<Form>,
    .finish_gradient = finish_gradient<Form>,
    .multiply = multiply,
    .multiply_gradient = multiply_gradient,
};

template <typename Storage>
constexpr WinogradForms forms = {winograd_table<Stride1, Storage>, winograd_table<Stride2, Storage>,
                                 winograd_table<Stride2Backward, Storage>};

constexpr WinogradTables tables = {forms<F32>, forms<Bf16>};
