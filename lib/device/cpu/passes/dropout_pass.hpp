// Ops::drop.
#pragma once

#include "device/cpu/cpu_context.hpp"
#include "device/ops.hpp"

namespace lockstep::cpu {

void drop(const CpuContext& context, const Dropout& dropout, const Tensor& x, const Tensor& y);
void plain_drop(const CpuContext& context, const Dropout& dropout, const Tensor& x, const Tensor& y);

}  // namespace lockstep::cpu
