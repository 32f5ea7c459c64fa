// The three products of a linear layer, fp32. Shapes as in Ops: x [n, in], weight [out, in], y [n, out].
#pragma once

#include <array>
#include <map>
#include <memory>

#include "device/cpu/cpu_context.hpp"
#include "device/cpu/onednn_adapter.hpp"
#include "device/ops.hpp"

namespace lockstep::cpu {

class Matmul {
 public:
  explicit Matmul(const CpuContext& context) : context_(context) {}

  void linear_forward(const Tensor& x, const Tensor& weight, const Tensor& y);
  void linear_backward_data(const Tensor& dy, const Tensor& weight, const Tensor& dx);
  void linear_backward_weight(const Tensor& x, const Tensor& dy, const Tensor& dweight, Accumulate accumulate);

 private:
  void run(const MatrixProduct& product, const std::array<std::byte*, 3>& operands);

  const CpuContext& context_;
  std::map<MatrixProduct, std::unique_ptr<OneDnnKernel>> kernels_;
};

}  // namespace lockstep::cpu
