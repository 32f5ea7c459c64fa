// Our functions of cuBLASLt, which load the library, with the real one. Without a GPU it describes products, but
// computes none.
#include <cublasLt.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>

namespace lockstep::cuda::cublaslt_library_test {

// The library's own function, which ours has loaded.
template <typename Function>
Function* own(const char* name) {
  void* const library = ::dlopen(fmt::format("libcublasLt.so.{}", CUBLAS_VER_MAJOR).c_str(), RTLD_LAZY | RTLD_NOLOAD);
  return library == nullptr ? nullptr : reinterpret_cast<Function*>(::dlsym(library, name));
}

TEST(CublasLtLibraryTest, is_loaded_by_the_first_call) {
  EXPECT_EQ(cublasLtGetVersion() / 10000, CUBLAS_VER_MAJOR);
  EXPECT_STREQ(cublasLtGetStatusString(CUBLAS_STATUS_ALLOC_FAILED), "the resource allocation failed");
}

TEST(CublasLtLibraryTest, describes_matrices) {
  cublasLtMatrixLayout_t layout = nullptr;
  ASSERT_EQ(cublasLtMatrixLayoutCreate(&layout, CUDA_R_32F, 3, 5, 7), CUBLAS_STATUS_SUCCESS);
  auto* const get = own<decltype(cublasLtMatrixLayoutGetAttribute)>("cublasLtMatrixLayoutGetAttribute");
  ASSERT_NE(get, nullptr);
  std::uint64_t rows = 0;
  std::uint64_t columns = 0;
  std::int64_t leading = 0;
  get(layout, CUBLASLT_MATRIX_LAYOUT_ROWS, &rows, sizeof rows, nullptr);
  get(layout, CUBLASLT_MATRIX_LAYOUT_COLS, &columns, sizeof columns, nullptr);
  get(layout, CUBLASLT_MATRIX_LAYOUT_LD, &leading, sizeof leading, nullptr);
  EXPECT_EQ(rows, 3U);
  EXPECT_EQ(columns, 5U);
  EXPECT_EQ(leading, 7);
  EXPECT_EQ(cublasLtMatrixLayoutDestroy(layout), CUBLAS_STATUS_SUCCESS);
}

TEST(CublasLtLibraryTest, describes_products_and_preferences) {
  cublasLtMatmulDesc_t product = nullptr;
  ASSERT_EQ(cublasLtMatmulDescCreate(&product, CUBLAS_COMPUTE_32F, CUDA_R_32F), CUBLAS_STATUS_SUCCESS);
  const cublasOperation_t transposed = CUBLAS_OP_T;
  EXPECT_EQ(cublasLtMatmulDescSetAttribute(product, CUBLASLT_MATMUL_DESC_TRANSB, &transposed, sizeof transposed),
            CUBLAS_STATUS_SUCCESS);
  auto* const get = own<decltype(cublasLtMatmulDescGetAttribute)>("cublasLtMatmulDescGetAttribute");
  ASSERT_NE(get, nullptr);
  cublasOperation_t order = CUBLAS_OP_N;
  get(product, CUBLASLT_MATMUL_DESC_TRANSB, &order, sizeof order, nullptr);
  EXPECT_EQ(order, CUBLAS_OP_T);
  EXPECT_EQ(cublasLtMatmulDescDestroy(product), CUBLAS_STATUS_SUCCESS);

  cublasLtMatmulPreference_t preference = nullptr;
  ASSERT_EQ(cublasLtMatmulPreferenceCreate(&preference), CUBLAS_STATUS_SUCCESS);
  const std::uint64_t bytes = 1 << 20;
  const auto set = [&](std::size_t size) {
    return cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes, size);
  };
  EXPECT_EQ(set(sizeof bytes), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(set(1), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(cublasLtMatmulPreferenceDestroy(preference), CUBLAS_STATUS_SUCCESS);
}

TEST(CublasLtLibraryTest, refuses_products_without_a_handle) {
  EXPECT_EQ(cublasLtMatmul(nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
                           nullptr, nullptr, nullptr, nullptr, 0, nullptr),
            CUBLAS_STATUS_NOT_INITIALIZED);
}

}  // namespace lockstep::cuda::cublaslt_library_test
