// The elements of an fp32 tensor that the host may read and write, such as a slot of a flat buffer.
#pragma once

#include <cstddef>
#include <span>

#include "device/tensor.hpp"

namespace lockstep {

inline std::span<float> elements(const Tensor& tensor) {
  return {tensor.as<float>(), static_cast<std::size_t>(tensor.shape().count())};
}

}  // namespace lockstep
