#include "device/cuda/matmul.hpp"

#include "device/cuda/check_cuda.hpp"
#include "device/cuda/operands.hpp"

namespace lockstep::cuda {
namespace {

constexpr std::int64_t workspace_bytes = 32 << 20;  // what cuBLAS recommends for Hopper, the most of any GPU

struct DestroyLayout {
  void operator()(cublasLtMatrixLayoutOpaque_t* layout) const noexcept { cublasLtMatrixLayoutDestroy(layout); }
};
struct DestroyOperation {
  void operator()(cublasLtMatmulDescOpaque_t* operation) const noexcept { cublasLtMatmulDescDestroy(operation); }
};
struct DestroyPreference {
  void operator()(cublasLtMatmulPreferenceOpaque_t* preference) const noexcept {
    cublasLtMatmulPreferenceDestroy(preference);
  }
};
using MatrixLayout = std::unique_ptr<cublasLtMatrixLayoutOpaque_t, DestroyLayout>;
using Operation = std::unique_ptr<cublasLtMatmulDescOpaque_t, DestroyOperation>;
using Preference = std::unique_ptr<cublasLtMatmulPreferenceOpaque_t, DestroyPreference>;

// A matrix in memory, before transposition.
MatrixLayout matrix(std::int64_t rows, std::int64_t columns) {
  cublasLtMatrixLayout_t made = nullptr;
  check_cublas(cublasLtMatrixLayoutCreate(&made, CUDA_R_32F, static_cast<std::uint64_t>(rows),
                                          static_cast<std::uint64_t>(columns), rows),
               "describe a matrix");
  return MatrixLayout(made);
}

MatrixLayout operand(std::int64_t rows, std::int64_t columns, cublasOperation_t order) {
  return order == CUBLAS_OP_N ? matrix(rows, columns) : matrix(columns, rows);
}

Operation operation(cublasOperation_t a_order, cublasOperation_t b_order, Products products) {
  cublasLtMatmulDesc_t made = nullptr;
  check_cublas(cublasLtMatmulDescCreate(
                   &made, products == Products::tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F),
               "describe a product");
  Operation owner(made);
  check_cublas(cublasLtMatmulDescSetAttribute(made, CUBLASLT_MATMUL_DESC_TRANSA, &a_order, sizeof a_order),
               "describe a product");
  check_cublas(cublasLtMatmulDescSetAttribute(made, CUBLASLT_MATMUL_DESC_TRANSB, &b_order, sizeof b_order),
               "describe a product");
  return owner;
}

Preference preference() {
  cublasLtMatmulPreference_t made = nullptr;
  check_cublas(cublasLtMatmulPreferenceCreate(&made), "state a preference");
  Preference owner(made);
  const std::uint64_t memory = workspace_bytes;
  check_cublas(
      cublasLtMatmulPreferenceSetAttribute(made, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &memory, sizeof memory),
      "state a preference");
  // cuBLAS assumes 256 by default; parameters are aligned to cache lines.
  const std::uint32_t alignment = Arena::alignment;
  for (const auto attribute :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
    check_cublas(cublasLtMatmulPreferenceSetAttribute(made, attribute, &alignment, sizeof alignment),
                 "state a preference");
  }
  return owner;
}

}  // namespace

Matmul::Matmul(const LibraryContext& context) : context_(context) {
  cublasLtHandle_t handle = nullptr;
  check_cublas(cublasLtCreate(&handle), "start");
  handle_.reset(handle);
}

void Matmul::linear_forward(const Tensor& x, const Tensor& weight, const Tensor& y) {
  require_linear(x, weight, y);
  run({y.shape()[1], y.shape()[0], x.shape()[1], CUBLAS_OP_T, CUBLAS_OP_N}, {weight, x, y, Accumulate::overwrite});
}

void Matmul::linear_backward_data(const Tensor& dy, const Tensor& weight, const Tensor& dx) {
  require_linear(dx, weight, dy);
  run({dx.shape()[1], dx.shape()[0], dy.shape()[1], CUBLAS_OP_N, CUBLAS_OP_N}, {weight, dy, dx, Accumulate::overwrite});
}

void Matmul::linear_backward_weight(const Tensor& x, const Tensor& dy, const Tensor& dweight, Accumulate accumulate) {
  require_linear(x, dweight, dy);
  run({x.shape()[1], dy.shape()[1], x.shape()[0], CUBLAS_OP_N, CUBLAS_OP_T}, {x, dy, dweight, accumulate});
}

cublasLtMatmulAlgo_t Matmul::choose(const Product& product) const {
  const Operation described = operation(product.a_order, product.b_order, context_.products);
  const MatrixLayout a = operand(product.m, product.k, product.a_order);
  const MatrixLayout b = operand(product.k, product.n, product.b_order);
  const MatrixLayout c = matrix(product.m, product.n);
  cublasLtMatmulHeuristicResult_t result{};
  int found = 0;
  check_cublas(cublasLtMatmulAlgoGetHeuristic(handle_.get(), described.get(), a.get(), b.get(), c.get(), c.get(),
                                              preference().get(), 1, &result, &found),
               "choose a kernel");
  require(found == 1 && result.state == CUBLAS_STATUS_SUCCESS, Failure::other,
          "cuBLAS has no product of {}x{} and {}x{} matrices on this GPU.", product.m, product.k, product.k, product.n);
  return result.algo;
}

void Matmul::run(const Product& product, const Operands& operands) {
  auto found = algorithms_.find(product);
  if (found == algorithms_.end()) found = algorithms_.emplace(product, choose(product)).first;
  const float alpha = 1;
  const float beta = operands.accumulate == Accumulate::add ? 1 : 0;
  const MatrixLayout a = operand(product.m, product.k, product.a_order);
  const MatrixLayout b = operand(product.k, product.n, product.b_order);
  const MatrixLayout c = matrix(product.m, product.n);
  const Tensor workspace = scratch_bytes(context_.arena, workspace_bytes);
  check_cublas(
      cublasLtMatmul(handle_.get(), operation(product.a_order, product.b_order, context_.products).get(), &alpha,
                     operands.a.data(), a.get(), operands.b.data(), b.get(), &beta, operands.c.data(), c.get(),
                     operands.c.data(), c.get(), &found->second, workspace.data(), workspace_bytes, context_.stream),
      "multiply matrices");
}

}  // namespace lockstep::cuda
