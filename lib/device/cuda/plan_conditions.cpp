#include "device/cuda/plan_conditions.hpp"

#include <fmt/format.h>

namespace lockstep::cuda {

std::string plan_conditions_of(const GpuKind& gpu, const DeviceOptions& options) {
  const std::size_t version = gpu.cudnn_version;
  return fmt::format("cuda: {}, compute capability {}.{}, cuDNN {}.{}.{}, {}{}{}", gpu.name, gpu.major, gpu.minor,
                     version / 10000, version % 10000 / 100, version % 100, name_of(options.precision),
                     options.tf32 ? ", tf32" : "", options.deterministic ? ", deterministic" : "");
}

}  // namespace lockstep::cuda
