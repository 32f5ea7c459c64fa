// Converts a tensor's element type to a template argument.
#pragma once

#include <cassert>
#include <type_traits>

#include "device/tensor.hpp"

namespace lockstep::cuda {

// Calls act with std::integral_constant<DType, dtype>, which is f32, bf16 or f16.
template <typename Act>
void with_dtype(DType dtype, const Act& act) {
  switch (dtype) {
    case DType::f32:
      act(std::integral_constant<DType, DType::f32>());
      return;
    case DType::bf16:
      act(std::integral_constant<DType, DType::bf16>());
      return;
    case DType::f16:
      act(std::integral_constant<DType, DType::f16>());
      return;
    case DType::i64:
    case DType::i32:
    case DType::u8:
      break;
  }
  assert(false);  // not a type of features
}

}  // namespace lockstep::cuda
