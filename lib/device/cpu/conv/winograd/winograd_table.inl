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
const WinogradLoops& table_of(WinogradForm form) {
  switch (form) {
    case WinogradForm::stride2:
      return winograd_table<Stride2, Storage>;
    case WinogradForm::stride2_backward_data:
      return winograd_table<Stride2Backward, Storage>;
    case WinogradForm::stride1:
      break;
  }
  return winograd_table<Stride1, Storage>;
}
