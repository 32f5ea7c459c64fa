#include "dataset/loading/cuda_loader.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "dataset/loading/cuda_image_pass.hpp"
#include "dataset/loading/prefetch_ring.hpp"
#include "device/cuda/check_cuda.hpp"
#include "device/cuda/side_stream.hpp"
#include "device/profiler_range.hpp"

namespace lockstep {
namespace {

using cuda::check_cuda;
using cuda::SampleAugmentation;

std::int64_t bytes_of(const SampleShape& shape) { return shape.height * shape.width * shape.channels; }

// Layout of a micro-batch: augmentation parameters, mixup weights, labels and pixels, contiguous in host or GPU memory.
struct MicroBatchLayout {
  MicroBatchLayout(const LoaderSource& source, PixelSource pixels)
      : augmentation_count(source.mixes() ? 2 * source.places : source.places),
        share_count(source.mixes() ? source.places : 0) {
    if (pixels == PixelSource::resident) return;
    label_count = source.places + (source.mixes() ? outer_partners : 0);
    pixel_bytes = label_count * bytes_of(image_shape(source));
  }

  std::int64_t shares_at() const { return augmentation_count * std::int64_t{sizeof(SampleAugmentation)}; }
  std::int64_t labels_at() const { return shares_at() + share_count * size_of(DType::f32); }
  std::int64_t pixels_at() const { return labels_at() + label_count * size_of(DType::i32); }
  std::int64_t bytes() const { return pixels_at() + pixel_bytes; }

  std::int64_t augmentation_count;
  std::int64_t share_count;
  std::int64_t label_count = 0;
  std::int64_t pixel_bytes = 0;
};

// A micro-batch in pinned memory.
struct PinnedMicroBatch {
  explicit PinnedMicroBatch(const MicroBatchLayout& layout) : memory(layout.bytes()) {
    std::byte* const data = memory.data();
    micro_batch.augmentations = {reinterpret_cast<SampleAugmentation*>(data),
                                 static_cast<std::size_t>(layout.augmentation_count)};
    micro_batch.shares = {reinterpret_cast<float*>(data + layout.shares_at()),
                          static_cast<std::size_t>(layout.share_count)};
    micro_batch.labels = {reinterpret_cast<std::int32_t*>(data + layout.labels_at()),
                          static_cast<std::size_t>(layout.label_count)};
    micro_batch.pixels = {reinterpret_cast<std::uint8_t*>(data + layout.pixels_at()),
                          static_cast<std::size_t>(layout.pixel_bytes)};
  }

  cuda::PinnedMemory memory;
  RawMicroBatch micro_batch;
};

Tensor device_bytes(Device& device, std::int64_t count) { return device.make(Shape{count}, DType::u8, Layout::plain); }

void copy(const void* host, std::int64_t bytes, const Tensor& device, std::int64_t offset, cudaStream_t stream) {
  check_cuda(
      cudaMemcpyAsync(device.data() + offset, host, static_cast<std::size_t>(bytes), cudaMemcpyHostToDevice, stream),
      "copy samples to the GPU");
}

// Double buffering on the GPU: one buffer is processed while the other is filled. The batch itself always uses the same
// memory.
class CudaLoader final : public Loader {
 public:
  CudaLoader(cuda::CudaDevice& device, const LoaderSource& source, PixelSource pixels)
      : device_(device), source_(source), layout_(source, pixels), side_(cuda::make_stream()) {
    const Manifest& manifest = source.dataset->manifest();
    const SampleShape shape = image_shape(source);
    const auto places = source.places;
    batch_.images =
        device.make({places, shape.height, shape.width, shape.channels}, device.image_dtype(), Layout::images);
    batch_.labels = device.make(Shape{places}, DType::i32, Layout::plain);
    if (source.mixes()) {
      batch_.others = device.make(Shape{places}, DType::i32, Layout::plain);
      batch_.shares = device.make(Shape{places}, DType::f32, Layout::plain);
    }
    mean_ = uploaded(manifest.mean);
    deviation_ = uploaded(manifest.deviation);
    for (Place& place : places_) place.data = device_bytes(device, layout_.bytes());
    if (pixels == PixelSource::resident) upload_split();
    device_.synchronize();  // earlier work on this memory may still be queued
    ring_ = std::make_unique<PrefetchRing<PinnedMicroBatch>>(
        [this] { return PinnedMicroBatch(layout_); },
        [this, pixels](std::int64_t micro_batch, PinnedMicroBatch& memory) {
          fill_raw_micro_batch(source_, pixels, micro_batch, memory.micro_batch);
        },
        source.threads);
  }
  CudaLoader(const CudaLoader&) = delete;
  CudaLoader& operator=(const CudaLoader&) = delete;
  // Copies may be in flight.
  ~CudaLoader() override { static_cast<void>(cudaStreamSynchronize(side_.get())); }

  const Batch& next() override {
    start_next();
    started_ = false;
    const Place& place = places_[filled_];
    check_cuda(cudaStreamWaitEvent(device_.stream(), place.arrived.get(), 0),
               "make the compute stream wait for an upload");
    cuda::queue_batch(samples_at(place), reinterpret_cast<const SampleAugmentation*>(place.data.data()),
                      reinterpret_cast<const float*>(place.data.data() + layout_.shares_at()), batch_,
                      device_.stream());
    check_cuda(cudaEventRecord(place.released.get(), device_.stream()), "record an event");
    batch_.samples = place.samples;
    return batch_;
  }

  // An event that was never recorded counts as completed.
  void start_next() override {
    if (started_) return;
    started_ = true;
    // The ring reuses the previous micro-batch's memory, so its copy must have completed.
    check_cuda(cudaEventSynchronize(places_[filled_].arrived.get()), "wait for an upload");
    const PinnedMicroBatch& pinned = ring_->next();
    const ProfilerRange range("upload a micro-batch");
    filled_ = 1 - filled_;
    Place& place = places_[filled_];
    check_cuda(cudaStreamWaitEvent(side_.get(), place.released.get(), 0),
               "make the upload stream wait for the compute stream");
    copy(pinned.memory.data(), layout_.bytes(), place.data, 0, side_.get());
    check_cuda(cudaEventRecord(place.arrived.get(), side_.get()), "record an event");
    place.samples = pinned.micro_batch.samples;
  }

  double waited_ms() const override { return ring_->waited_ms(); }

 private:
  struct Place {
    Tensor data;
    std::int64_t samples = 0;
    cuda::Event arrived = cuda::make_event();
    cuda::Event released = cuda::make_event();
  };

  Tensor uploaded(const std::vector<float>& values) {
    const Tensor tensor = device_.make(Shape{static_cast<std::int64_t>(values.size())}, DType::f32, Layout::plain);
    device_.write(values, tensor);
    return tensor;
  }

  cuda::SampleStore samples_at(const Place& place) const {
    const std::byte* const pixels = split_pixels_ ? split_pixels_.data() : place.data.data() + layout_.pixels_at();
    const std::byte* const labels = split_labels_ ? split_labels_.data() : place.data.data() + layout_.labels_at();
    return {reinterpret_cast<const std::uint8_t*>(pixels), mean_.as<float>(), deviation_.as<float>(),
            reinterpret_cast<const std::int32_t*>(labels)};
  }

  // Copies in chunks through pinned memory.
  void upload_split() {
    const Dataset& dataset = *source_.dataset;
    const std::int64_t bytes_each = bytes_of(image_shape(source_));
    constexpr std::int64_t piece_bytes = 64 << 20;
    const std::int64_t piece = std::clamp<std::int64_t>(piece_bytes / bytes_each, 1, dataset.samples());
    const cuda::PinnedMemory pinned(piece * bytes_each);
    split_pixels_ = device_bytes(device_, dataset.samples() * bytes_each);
    std::vector<std::int32_t> labels;
    for (std::int64_t first = 0; first < dataset.samples(); first += piece) {
      const std::int64_t count = std::min(piece, dataset.samples() - first);
      copy_pixels(dataset, first, count, reinterpret_cast<std::uint8_t*>(pinned.data()));
      for (std::int64_t sample = first; sample < first + count; ++sample) labels.push_back(dataset.label(sample));
      copy(pinned.data(), count * bytes_each, split_pixels_, first * bytes_each, device_.stream());
      device_.synchronize();
    }
    split_labels_ = device_.make(Shape{dataset.samples()}, DType::i32, Layout::plain);
    copy(labels.data(), split_labels_.bytes(), split_labels_, 0, device_.stream());
    device_.synchronize();
  }

  cuda::CudaDevice& device_;
  LoaderSource source_;
  MicroBatchLayout layout_;
  cuda::Stream side_;
  Batch batch_;
  Tensor mean_;
  Tensor deviation_;
  Tensor split_pixels_;  // the whole split, if it is resident
  Tensor split_labels_;
  std::array<Place, 2> places_;
  std::size_t filled_ = 0;  // index of the buffer that the last upload filled
  bool started_ = false;    // the upload of a micro-batch that next() has not returned yet
  std::unique_ptr<PrefetchRing<PinnedMicroBatch>> ring_;
};

}  // namespace

std::int64_t resident_bytes(const Dataset& dataset) {
  return dataset.samples() * (bytes_of(dataset.manifest().shape) + size_of(DType::i32));
}

std::unique_ptr<Loader> make_cuda_loader(cuda::CudaDevice& device, const LoaderSource& source, PixelSource pixels) {
  return std::make_unique<CudaLoader>(device, source, pixels);
}

}  // namespace lockstep
