// The conditions for which engines were chosen. A plan is valid only for the same ones.
#pragma once

#include <cstddef>
#include <string>

#include "device/device.hpp"

namespace lockstep::cuda {

struct GpuKind {
  std::string name;
  int major = 0;  // compute capability
  int minor = 0;
  std::size_t cudnn_version = 0;  // cuDNN's own numbering: 91900
};

// "cuda: NVIDIA H200, compute capability 9.0, cuDNN 9.19.0, f32, tf32, deterministic"
std::string plan_conditions_of(const GpuKind& gpu, const DeviceOptions& options);

}  // namespace lockstep::cuda
