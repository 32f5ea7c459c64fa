// Noise for tests of several ranks: the same micro-batches, whoever carries them.
#pragma once

#include <deque>
#include <vector>

#include "base/random.hpp"
#include "dataset/loading/loader.hpp"
#include "device/device.hpp"

namespace lockstep {

inline constexpr std::int64_t micro_batch_size = 4;

// The micro-batches of a share, in turn; micro-batch p of step s depends on both and on nothing else.
class MicroBatchLoader final : public Loader {
 public:
  MicroBatchLoader(Device& device, const SampleShape& shape, const LoaderShare& share)
      : device_(device),
        share_(share),
        batch_{device.make({micro_batch_size, shape.height, shape.width, shape.channels}, DType::f32, Layout::images),
               device.make({micro_batch_size}, DType::i32, Layout::plain), micro_batch_size} {}

  void request(std::int64_t micro_batch) override { requested_.push_back(micro_batch); }
  const Batch& next() override {
    const std::int64_t number = next_number();
    const auto step = static_cast<std::uint64_t>(number / share_.total_micro_batches);
    const auto micro_batch = static_cast<std::uint64_t>(number % share_.total_micro_batches);
    std::vector<float> pixels(static_cast<std::size_t>(batch_.images.shape().count()));
    for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = 2 * uniform(philox(step, micro_batch, i)[0]) - 1;
    std::vector<float> labels(micro_batch_size);
    for (std::size_t i = 0; i < labels.size(); ++i)
      labels[i] = static_cast<float>(philox(step, micro_batch, i)[1] % 10);
    device_.write(pixels, batch_.images);
    device_.write(labels, batch_.labels);
    return batch_;
  }
  double waited_ms() const override { return 0; }

 private:
  // Over all ranks and steps: the one that was requested, if any was, else the next of the share.
  std::int64_t next_number() {
    if (!requested_.empty()) {
      const std::int64_t number = requested_.front();
      requested_.pop_front();
      return number;
    }
    const std::int64_t call = calls_++;
    return call / share_.micro_batches * share_.total_micro_batches + share_.first_micro_batch +
           call % share_.micro_batches;
  }

  Device& device_;
  LoaderShare share_;
  Batch batch_;
  std::int64_t calls_ = 0;
  std::deque<std::int64_t> requested_;
};

}  // namespace lockstep
