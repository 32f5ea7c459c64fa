// Access to one element of a tensor in host memory, as fp32. For loading and saving, not for a step.
#pragma once

#include <cstdint>

#include "device/tensor.hpp"

namespace lockstep {

// `place` counts stored elements. Values are rounded to the tensor's type; integer types drop the fraction.
void write_value(const Tensor& tensor, std::int64_t place, float value);
float read_value(const Tensor& tensor, std::int64_t place);

}  // namespace lockstep
