// The three products of a linear layer in fp32. Shapes as in Ops: x [n, in], weight [out, in], y [n, out].
//
// Each product is c = a * b, computed by the tiles of product_loops.hpp. Values of a are broadcast; b is packed into
// panels of B columns. No sum is split, so bits do not depend on the number of threads.
#pragma once

#include "device/cpu/cpu_context.hpp"
#include "device/cpu/products/product_loops.hpp"
#include "device/ops.hpp"

namespace lockstep::cpu {

class Matmul {
 public:
  // `set` must run on this processor; its lanes are the context's.
  Matmul(const CpuContext& context, InstructionSet set);

  void linear_forward(const Tensor& x, const Tensor& weight, const Tensor& y) const;
  void linear_backward_data(const Tensor& dy, const Tensor& weight, const Tensor& dx) const;
  void linear_backward_weight(const Tensor& x, const Tensor& dy, const Tensor& dweight, Accumulate accumulate) const;

 private:
  struct Matrix;
  struct Product;
  struct Panels;

  void run(const Product& product) const;
  void pack(const Product& product, const Panels& panels) const;
  void multiply(const Product& product, const Panels& panels, std::int64_t item) const;

  const CpuContext& context_;
  const ProductLoops& loops_;
};

}  // namespace lockstep::cpu
