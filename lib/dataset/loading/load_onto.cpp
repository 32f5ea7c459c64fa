// The way to the device in a build with CUDA.
#include "dataset/loading/load_onto.hpp"

#include "dataset/loading/gpu_loader.hpp"

namespace lockstep {

std::unique_ptr<Loader> load_onto(Device& device, const LoaderSource& source, DataPlace place) {
  auto* const gpu = dynamic_cast<cuda::CudaDevice*>(&device);
  if (gpu == nullptr) return load_onto_cpu(source, place);
  const bool stays = place == DataPlace::device ||
                     (place == DataPlace::automatic && resident_bytes(*source.dataset) <= gpu->free_bytes() / 4);
  return make_gpu_loader(*gpu, source, stays ? PixelSource::resident : PixelSource::travelling);
}

}  // namespace lockstep
