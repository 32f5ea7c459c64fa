// The JSON text in cuDNN's descriptor of a GPU.
#pragma once

#include <cstdint>
#include <string>

#include "device/cuda/conv/cudnn_descriptor.hpp"

namespace lockstep {

// `properties` is finalized. Throws Error if cuDNN cannot write it.
inline std::string gpu_description(const cuda::Descriptor& properties) {
  const std::int64_t size = properties.count(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR);
  std::string text(static_cast<std::size_t>(size), '\0');
  properties.read(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, size, text.data());
  text.resize(text.find_last_of('}') + 1);  // without a final zero
  return text;
}

}  // namespace lockstep
