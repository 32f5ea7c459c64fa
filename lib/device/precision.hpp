// The data types of activations and weights in computations.
#pragma once

#include <array>
#include <string>

#include "base/text/choice.hpp"
#include "device/tensor.hpp"

namespace lockstep {

inline constexpr std::array<Choice<DType>, 3> precisions{
    {{"fp32", DType::f32}, {"bf16", DType::bf16}, {"fp16", DType::f16}}};

// The spelling of --precision.
inline std::string precision_name(DType dtype) { return choice_name(precisions, dtype); }

}  // namespace lockstep
