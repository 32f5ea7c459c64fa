// A device in host memory that computes as a GPU does: its layouts and its kernels, with loops in place of launches;
// convolutions and linear layers, which libraries do there, are the naive ones.
#pragma once

#include <memory>

#include "device/device.hpp"

namespace lockstep {

std::unique_ptr<Device> open_hosted_cuda_device(const DeviceOptions& options);

}  // namespace lockstep
