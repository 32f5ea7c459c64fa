#include "step/noise.hpp"

#include <vector>

#include "base/random.hpp"

namespace lockstep {

Batch noise_batch(Device& device, const SampleShape& shape, std::int64_t samples, std::int64_t classes) {
  const Shape dims{samples, shape.height, shape.width, shape.channels};
  std::vector<float> pixels(static_cast<std::size_t>(dims.count()));
  for (std::size_t index = 0; index < pixels.size(); ++index) {
    pixels[index] = 2 * uniform(static_cast<std::uint32_t>(index) * 2654435769U) - 1;  // Knuth's multiplicative hash
  }
  std::vector<float> labels(static_cast<std::size_t>(samples));
  for (std::size_t index = 0; index < labels.size(); ++index) {
    labels[index] = static_cast<float>(index % static_cast<std::size_t>(classes));
  }
  Batch batch{device.make(dims, device.image_dtype(), Layout::images),
              device.make({samples}, DType::i32, Layout::plain), samples};
  device.write(pixels, batch.images);
  device.write(labels, batch.labels);
  return batch;
}

}  // namespace lockstep
