// The three products of a linear layer by cuBLASLt, in fp32. Shapes as in Ops: x [n, in], weight [out, in], y [n, out].
#pragma once

#include <cublasLt.h>

#include <compare>
#include <map>
#include <memory>
#include <type_traits>

#include "device/cuda/library_context.hpp"
#include "device/ops.hpp"

namespace lockstep::cuda {

class Matmul {
 public:
  // `context` outlives this.
  explicit Matmul(const LibraryContext& context);

  void linear_forward(const Tensor& x, const Tensor& weight, const Tensor& y);
  void linear_backward_data(const Tensor& dy, const Tensor& weight, const Tensor& dx);
  void linear_backward_weight(const Tensor& x, const Tensor& dy, const Tensor& dweight, Accumulate accumulate);

 private:
  // C = op(A) op(B) in cuBLAS's column-major order. Row-major matrices are its transposes, so operands are exchanged.
  struct Product {
    std::int64_t m, n, k;
    cublasOperation_t a_order;
    cublasOperation_t b_order;
    auto operator<=>(const Product&) const = default;
  };
  struct Operands {
    const Tensor& a;
    const Tensor& b;
    const Tensor& c;
    Accumulate accumulate;
  };
  struct Close {
    void operator()(cublasLtContext* handle) const noexcept { cublasLtDestroy(handle); }
  };

  void run(const Product& product, const Operands& operands);
  cublasLtMatmulAlgo_t choose(const Product& product) const;

  const LibraryContext& context_;
  std::unique_ptr<cublasLtContext, Close> handle_;
  std::map<Product, cublasLtMatmulAlgo_t> algorithms_;
};

}  // namespace lockstep::cuda
