// One element of a tensor in host memory, as fp32. For the edges of a program, not for a step.
#pragma once

#include <cstdint>

#include "device/tensor.hpp"

namespace lockstep {

// `place` counts elements of storage. Values are rounded to the tensor's type; whole numbers lose their fraction.
void write_value(const Tensor& tensor, std::int64_t place, float value);
float read_value(const Tensor& tensor, std::int64_t place);

}  // namespace lockstep
