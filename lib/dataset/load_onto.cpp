// The way to the device in a build with CUDA.
#include "dataset/load_onto.hpp"

#include <array>
#include <cstring>
#include <utility>

#include "dataset/cuda_image_pass.hpp"
#include "device/cuda/check_cuda.hpp"
#include "device/cuda/cuda_device.hpp"
#include "device/cuda/side_stream.hpp"

namespace lockstep {
namespace {

using cuda::check_cuda;

// Two places on the device: one in work, one being filled.
class UploadingLoader final : public Loader {
 public:
  UploadingLoader(cuda::CudaDevice& device, std::unique_ptr<Loader> host)
      : device_(device), host_(std::move(host)), side_(cuda::make_stream()) {}
  UploadingLoader(const UploadingLoader&) = delete;
  UploadingLoader& operator=(const UploadingLoader&) = delete;
  // Copies may be under way.
  ~UploadingLoader() override { static_cast<void>(cudaStreamSynchronize(side_.get())); }

  const Batch& next() override {
    start_next();
    started_ = false;
    // All work on the part before is queued by now: behind it, its place is free.
    if (in_work_ != nullptr) record(in_work_->released, device_.stream());
    in_work_ = filled_;
    check_cuda(cudaStreamWaitEvent(device_.stream(), in_work_->filled.get(), 0), "order work behind an upload");
    return in_work_->batch;
  }

  void start_next() override {
    if (started_) return;
    const Batch& batch = host_->next();
    if (!places_[0].batch.images) {
      for (Place& place : places_) place.reserve(device_, batch);
      device_.synchronize();  // what used this memory before may not have run yet
    }
    filled_ = filled_ == &places_[0] ? &places_[1] : &places_[0];
    fill(*filled_, batch);
    started_ = true;
  }

  double waited_ms() const override { return host_->waited_ms(); }

 private:
  struct Place {
    void reserve(Device& device, const Batch& host) {
      images = std::make_unique<cuda::PinnedMemory>(host.images.bytes());
      labels = std::make_unique<cuda::PinnedMemory>(host.labels.bytes());
      planes = device.make(Shape{host.images.shape().count()}, DType::f32, Layout::plain);
      batch.images = device.make(host.images.shape(), device.image_dtype(), Layout::images);
      batch.labels = device.make(host.labels.shape(), DType::i32, Layout::plain);
    }

    std::unique_ptr<cuda::PinnedMemory> images;
    std::unique_ptr<cuda::PinnedMemory> labels;
    Tensor planes;
    Batch batch;
    cuda::Event filled = cuda::make_event();
    cuda::Event released = cuda::make_event();
  };

  static void record(const cuda::Event& event, cudaStream_t stream) {
    check_cuda(cudaEventRecord(event.get(), stream), "record an event");
  }

  void upload(const Tensor& host, const cuda::PinnedMemory& pinned, const Tensor& device) const {
    const auto bytes = static_cast<std::size_t>(host.bytes());
    std::memcpy(pinned.data(), host.data(), bytes);
    check_cuda(cudaMemcpyAsync(device.data(), pinned.data(), bytes, cudaMemcpyHostToDevice, side_.get()),
               "copy a batch to the device");
  }

  // An event that was never recorded counts as reached.
  void fill(Place& place, const Batch& host) {
    check_cuda(cudaEventSynchronize(place.filled.get()), "wait for an upload");
    check_cuda(cudaStreamWaitEvent(side_.get(), place.released.get(), 0), "order an upload behind work");
    upload(host.images, *place.images, place.planes);
    upload(host.labels, *place.labels, place.batch.labels);
    cuda::queue_image_layout(place.planes, place.batch.images, side_.get());
    record(place.filled, side_.get());
    place.batch.samples = host.samples;
  }

  cuda::CudaDevice& device_;
  std::unique_ptr<Loader> host_;
  std::array<Place, 2> places_;
  Place* in_work_ = nullptr;
  Place* filled_ = nullptr;
  bool started_ = false;
  cuda::Stream side_;
};

}  // namespace

std::unique_ptr<Loader> load_onto(Device& device, std::unique_ptr<Loader> host) {
  auto* const gpu = dynamic_cast<cuda::CudaDevice*>(&device);
  if (gpu == nullptr) return host;
  return std::make_unique<UploadingLoader>(*gpu, std::move(host));
}

}  // namespace lockstep
