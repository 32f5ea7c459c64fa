#include "dataset/loading/cuda_image_pass.hpp"
#include "device/cuda/launch/cuda_launch.cuh"
#include "device/cuda/with_dtype.hpp"

namespace lockstep::cuda {

void queue_batch(const SampleStore& samples, const SampleView* views, const Batch& batch, cudaStream_t stream) {
  const CudaLaunch launch(stream);
  const FeatureMap images(batch.images);
  with_dtype(batch.images.dtype(), [&](auto dtype) {
    launch(images.vectors(), MakeImages<dtype()>{samples, views, images});
  });
  launch(batch.labels.shape()[0], GatherLabels{samples, views, batch.labels.as<std::int32_t>()});
}

}  // namespace lockstep::cuda
