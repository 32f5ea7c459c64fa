#include "device/cpu/matmul.hpp"

#include "device/cpu/flat_loops.hpp"

namespace lockstep::cpu {

void Matmul::linear_forward(const Tensor& x, const Tensor& weight, const Tensor& y) {
  run({x.shape()[0], y.shape()[1], x.shape()[1], MatrixOrder::rows, MatrixOrder::columns},
      {x.data(), weight.data(), y.data()});
}

void Matmul::linear_backward_data(const Tensor& dy, const Tensor& weight, const Tensor& dx) {
  run({dy.shape()[0], dx.shape()[1], dy.shape()[1], MatrixOrder::rows, MatrixOrder::rows},
      {dy.data(), weight.data(), dx.data()});
}

void Matmul::linear_backward_weight(const Tensor& x, const Tensor& dy, const Tensor& dweight, Accumulate accumulate) {
  const std::int64_t count = dy.shape()[1] * x.shape()[1];
  const MatrixProduct product{dy.shape()[1], x.shape()[1], x.shape()[0], MatrixOrder::columns, MatrixOrder::rows};
  if (accumulate == Accumulate::overwrite) {
    run(product, {dy.data(), x.data(), dweight.data()});
    return;
  }
  const Tensor part = scratch_tensor(context_.arena, count * size_of(DType::f32));
  run(product, {dy.data(), x.data(), part.data()});
  add_to(reinterpret_cast<const float*>(part.data()), count, dweight.as<float>());
}

void Matmul::run(const MatrixProduct& product, const std::array<std::byte*, 3>& operands) {
  std::unique_ptr<OneDnnKernel>& kernel = kernels_[product];
  if (kernel == nullptr) kernel = compile_product(product);
  const Tensor memory = scratch_tensor(context_.arena, kernel->scratch_bytes());
  kernel->run(operands, memory.data());
}

}  // namespace lockstep::cpu
