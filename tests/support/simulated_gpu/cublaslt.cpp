// The part of cuBLASLt that lib uses: fp32 products of column-major matrices, with plain loops.
#include <cublasLt.h>

#include <array>
#include <cstring>
#include <set>
#include <vector>

#include "support/simulated_gpu/convolution.hpp"
#include "support/simulated_gpu/gpu.hpp"

namespace lockstep::simulated {
namespace {

constexpr std::uintptr_t cublaslt_alignment = 256;

struct Operation {
  cublasComputeType_t compute;
  std::int32_t a_order = CUBLAS_OP_N;
  std::int32_t b_order = CUBLAS_OP_N;
};

struct Layout {
  std::int64_t rows, columns, leading;

  std::int64_t bytes() const { return ((columns - 1) * leading + rows) * 4; }
};

struct Preference {
  std::uint64_t workspace_bytes = 0;
  std::array<std::uint32_t, 4> alignments{256, 256, 256, 256};  // of A, B, C, D
};

// What a chosen algorithm may rely on, in the caller's cublasLtMatmulAlgo_t.
struct Algorithm {
  std::uint32_t magic;
  std::uint32_t compute;
  std::int64_t m, n, k;
  std::uint32_t alignment;
  std::uint32_t workspace_bytes;
};
static_assert(sizeof(Algorithm) <= sizeof(cublasLtMatmulAlgo_t));
constexpr std::uint32_t algorithm_magic = 0xB1A5;
constexpr std::uint32_t used_workspace = 4096;

// Opaque objects of one kind, which exist until they are destroyed.
template <typename Object>
class Objects {
 public:
  template <typename Handle>
  static cublasStatus_t make(Handle* handle, const Object& object) {
    const std::lock_guard lock(mutex());
    auto* const made = new Object(object);
    all().insert(made);
    *handle = reinterpret_cast<Handle>(made);
    return CUBLAS_STATUS_SUCCESS;
  }
  static cublasStatus_t destroy(void* handle) {
    const std::lock_guard lock(mutex());
    Object* const found = find(handle);
    if (found == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
    all().erase(found);
    delete found;
    return CUBLAS_STATUS_SUCCESS;
  }
  static Object* find(const void* handle) {
    auto* const found = static_cast<Object*>(const_cast<void*>(handle));
    return all().contains(found) ? found : nullptr;
  }

 private:
  static std::set<Object*>& all() {
    static auto* const made = new std::set<Object*>;
    return *made;
  }
};

struct Library {};

struct Product {
  Operation operation;
  Layout a, b, c;
  std::int64_t k;
};

// The shapes must fit.
bool describe(const Operation* operation, const Layout* a, const Layout* b, const Layout* c, const Layout* d,
              Product& product) {
  if (operation == nullptr || a == nullptr || b == nullptr || c == nullptr || d == nullptr) return false;
  const bool a_turned = operation->a_order == CUBLAS_OP_T;
  const bool b_turned = operation->b_order == CUBLAS_OP_T;
  product = {*operation, *a, *b, *c, a_turned ? a->rows : a->columns};
  return (a_turned ? a->columns : a->rows) == c->rows && (b_turned ? b->rows : b->columns) == c->columns &&
         (b_turned ? b->columns : b->rows) == product.k && d->rows == c->rows && d->columns == c->columns;
}

float value_at(const float* matrix, const Layout& layout, bool turned, std::int64_t row, std::int64_t column) {
  return turned ? matrix[row * layout.leading + column] : matrix[column * layout.leading + row];
}

void multiply(const Product& product, float alpha, const float* a, const float* b, float beta, float* c) {
  const bool a_turned = product.operation.a_order == CUBLAS_OP_T;
  const bool b_turned = product.operation.b_order == CUBLAS_OP_T;
  const bool is_tf32 = product.operation.compute == CUBLAS_COMPUTE_32F_FAST_TF32;
  for (std::int64_t column = 0; column < product.c.columns; ++column)
    for (std::int64_t row = 0; row < product.c.rows; ++row) {
      double sum = 0;
      for (std::int64_t i = 0; i < product.k; ++i) {
        const float left = value_at(a, product.a, a_turned, row, i);
        const float right = value_at(b, product.b, b_turned, i, column);
        sum += is_tf32 ? static_cast<double>(to_tf32(left)) * to_tf32(right) : static_cast<double>(left) * right;
      }
      float& to = c[column * product.c.leading + row];
      to = static_cast<float>(beta == 0 ? alpha * sum : alpha * sum + beta * static_cast<double>(to));
    }
}

bool is_usable(const void* memory, std::int64_t bytes, std::uintptr_t alignment) {
  return reinterpret_cast<std::uintptr_t>(memory) % alignment == 0 &&
         gpu().memory().is_on_device(memory, static_cast<std::size_t>(bytes), current_device());
}

}  // namespace
}  // namespace lockstep::simulated

using namespace lockstep::simulated;

extern "C" {

std::size_t cublasLtGetVersion() { return CUBLAS_VERSION; }

const char* cublasLtGetStatusString(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS:
      return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return "CUBLAS_STATUS_NOT_SUPPORTED";
    case CUBLAS_STATUS_EXECUTION_FAILED:
      return "CUBLAS_STATUS_EXECUTION_FAILED";
    default:
      return "CUBLAS_STATUS_INVALID_VALUE";
  }
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) { return Objects<Library>::make(handle, {}); }
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) { return Objects<Library>::destroy(handle); }

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type, std::uint64_t rows,
                                          std::uint64_t columns, std::int64_t leading) {
  if (type != CUDA_R_32F || leading < static_cast<std::int64_t>(rows)) return CUBLAS_STATUS_INVALID_VALUE;
  return Objects<Layout>::make(layout, {static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns), leading});
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) { return Objects<Layout>::destroy(layout); }

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* made, cublasComputeType_t compute, cudaDataType_t type) {
  const bool is_known = compute == CUBLAS_COMPUTE_32F || compute == CUBLAS_COMPUTE_32F_FAST_TF32;
  if (!is_known || type != CUDA_R_32F) return CUBLAS_STATUS_NOT_SUPPORTED;
  return Objects<Operation>::make(made, {compute});
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t made) { return Objects<Operation>::destroy(made); }

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t handle, cublasLtMatmulDescAttributes_t name,
                                              const void* value, std::size_t bytes) {
  const std::lock_guard lock(mutex());
  Operation* const operation = Objects<Operation>::find(handle);
  const bool is_order = name == CUBLASLT_MATMUL_DESC_TRANSA || name == CUBLASLT_MATMUL_DESC_TRANSB;
  if (operation == nullptr || !is_order || bytes != sizeof(std::int32_t)) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(name == CUBLASLT_MATMUL_DESC_TRANSA ? &operation->a_order : &operation->b_order, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* made) {
  return Objects<Preference>::make(made, {});
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t made) {
  return Objects<Preference>::destroy(made);
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t handle,
                                                    cublasLtMatmulPreferenceAttributes_t name, const void* value,
                                                    std::size_t bytes) {
  const std::lock_guard lock(mutex());
  Preference* const preference = Objects<Preference>::find(handle);
  if (preference == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  if (name == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES && bytes == sizeof(std::uint64_t)) {
    std::memcpy(&preference->workspace_bytes, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
  }
  const int operand = static_cast<int>(name) - static_cast<int>(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
  if (operand < 0 || operand > 3 || bytes != sizeof(std::uint32_t)) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&preference->alignments.at(static_cast<std::size_t>(operand)), value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t wanted, int most,
                                              cublasLtMatmulHeuristicResult_t* results, int* found) {
  const std::lock_guard lock(mutex());
  const Preference* const preference = Objects<Preference>::find(wanted);
  Product product{};
  const bool fits = describe(Objects<Operation>::find(operation), Objects<Layout>::find(a), Objects<Layout>::find(b),
                             Objects<Layout>::find(c), Objects<Layout>::find(d), product);
  *found = 0;
  if (Objects<Library>::find(handle) == nullptr || preference == nullptr || !fits || most < 1) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  std::uint32_t alignment = 256;
  for (const std::uint32_t one : preference->alignments) alignment = std::min(alignment, one);
  const std::uint32_t workspace = preference->workspace_bytes < used_workspace ? 0 : used_workspace;
  const Algorithm algorithm{algorithm_magic, static_cast<std::uint32_t>(product.operation.compute),
                            product.c.rows,  product.c.columns,
                            product.k,       alignment,
                            workspace};
  results[0] = {};
  std::memcpy(&results[0].algo, &algorithm, sizeof algorithm);
  results[0].workspaceSize = workspace;
  results[0].state = CUBLAS_STATUS_SUCCESS;
  *found = 1;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation, const void* alpha, const void* a,
                              cublasLtMatrixLayout_t a_layout, const void* b, cublasLtMatrixLayout_t b_layout,
                              const void* beta, const void* c, cublasLtMatrixLayout_t c_layout, void* d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t* chosen, void* workspace,
                              std::size_t workspace_bytes, cudaStream_t stream) {
  const std::lock_guard lock(mutex());
  Product product{};
  if (Objects<Library>::find(handle) == nullptr || chosen == nullptr || c != d ||
      !describe(Objects<Operation>::find(operation), Objects<Layout>::find(a_layout), Objects<Layout>::find(b_layout),
                Objects<Layout>::find(c_layout), Objects<Layout>::find(d_layout), product)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  Algorithm algorithm{};
  std::memcpy(&algorithm, chosen, sizeof algorithm);
  const bool is_right = algorithm.magic == algorithm_magic &&
                        algorithm.compute == static_cast<std::uint32_t>(product.operation.compute) &&
                        algorithm.m == product.c.rows && algorithm.n == product.c.columns && algorithm.k == product.k;
  const bool is_in_place = is_usable(a, product.a.bytes(), algorithm.alignment) &&
                           is_usable(b, product.b.bytes(), algorithm.alignment) &&
                           is_usable(d, product.c.bytes(), algorithm.alignment);
  const bool has_room = algorithm.workspace_bytes == 0 ||
                        (workspace_bytes >= algorithm.workspace_bytes &&
                         is_usable(workspace, static_cast<std::int64_t>(workspace_bytes), cublaslt_alignment));
  if (!is_right || !is_in_place || !has_room) return CUBLAS_STATUS_INVALID_VALUE;
  float alpha_value = 0;
  float beta_value = 0;
  std::memcpy(&alpha_value, alpha, sizeof alpha_value);
  std::memcpy(&beta_value, beta, sizeof beta_value);
  const cudaError_t queued = call([&] {
    return gpu().queue(stream, [=, bytes = algorithm.workspace_bytes] {
      std::memset(workspace, 0xA5, bytes);
      multiply(product, alpha_value, static_cast<const float*>(a), static_cast<const float*>(b), beta_value,
               static_cast<float*>(d));
      return cudaSuccess;
    });
  });
  return queued == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

}  // extern "C"
