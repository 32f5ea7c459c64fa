#include "dataset/loading/cuda_image_pass.hpp"
#include "device/cuda/launch/cuda_launch.cuh"
#include "device/cuda/with_dtype.hpp"

namespace lockstep::cuda {

void queue_batch(const SampleStore& samples, const SampleAugmentation* augmentations, const float* shares,
                 const Batch& batch, cudaStream_t stream) {
  const CudaLaunch launch(stream);
  const FeatureMap images(batch.images);
  const std::int64_t places = batch.labels.shape()[0];
  const bool mixes = static_cast<bool>(batch.shares);
  const SampleAugmentation* const others = mixes ? augmentations + places : nullptr;
  with_dtype(batch.images.dtype(), [&](auto dtype) {
    launch(images.vectors(), MakeImages<dtype()>{samples, augmentations, others, mixes ? shares : nullptr, images});
  });
  launch(places, GatherLabels{samples, augmentations, batch.labels.as<std::int32_t>()});
  if (!mixes) return;
  launch(places, GatherLabels{samples, others, batch.others.as<std::int32_t>()});
  launch(places, CopyShares{shares, batch.shares.as<float>()});
}

}  // namespace lockstep::cuda
