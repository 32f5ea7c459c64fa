// Noise for tests of several ranks: the same parts, whoever carries them.
#pragma once

#include <vector>

#include "base/random.hpp"
#include "dataset/loading/loader.hpp"
#include "device/device.hpp"

namespace lockstep {

inline constexpr std::int64_t part_size = 4;

// The parts of a share, in turn; part p of step s depends on both and on nothing else.
class PartLoader final : public Loader {
 public:
  PartLoader(Device& device, const SampleShape& shape, const LoaderShare& share)
      : device_(device),
        share_(share),
        batch_{device.make({part_size, shape.height, shape.width, shape.channels}, DType::f32, Layout::images),
               device.make({part_size}, DType::i32, Layout::plain), part_size} {}

  const Batch& next() override {
    const std::uint64_t step = calls_ / static_cast<std::uint64_t>(share_.parts);
    const std::uint64_t part =
        static_cast<std::uint64_t>(share_.first_part) + calls_ % static_cast<std::uint64_t>(share_.parts);
    ++calls_;
    std::vector<float> pixels(static_cast<std::size_t>(batch_.images.shape().count()));
    for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = 2 * uniform(philox(step, part, i)[0]) - 1;
    std::vector<float> labels(part_size);
    for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<float>(philox(step, part, i)[1] % 10);
    device_.write(pixels, batch_.images);
    device_.write(labels, batch_.labels);
    return batch_;
  }
  double waited_ms() const override { return 0; }

 private:
  Device& device_;
  LoaderShare share_;
  Batch batch_;
  std::uint64_t calls_ = 0;
};

}  // namespace lockstep
