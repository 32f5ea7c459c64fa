#include "comm/cuda_staged_all_reducer.hpp"

#include <cassert>
#include <utility>
#include <vector>

#include "device/cuda/check_cuda.hpp"
#include "device/cuda/side_stream.hpp"
#include "device/cuda/sum_marker.hpp"

namespace lockstep {
namespace {

using cuda::check_cuda;

// Pins memory that it does not own for its lifetime.
class PinnedRange {
 public:
  explicit PinnedRange(const Tensor& range) : address_(range.data()) {
    check_cuda(cudaHostRegister(address_, static_cast<std::size_t>(range.bytes()), cudaHostRegisterPortable),
               "pin the memory that ranks sum in");
  }
  PinnedRange(const PinnedRange&) = delete;
  PinnedRange& operator=(const PinnedRange&) = delete;
  ~PinnedRange() { static_cast<void>(cudaHostUnregister(address_)); }

 private:
  std::byte* address_;
};

class CudaStagedAllReducer final : public AllReducer {
 public:
  CudaStagedAllReducer(Device& device, cudaStream_t stream, std::unique_ptr<AllReducer> host)
      : device_(device), host_(std::move(host)), side_(stream), marker_(device, side_.handle()) {}

  // Copies may be in flight.
  ~CudaStagedAllReducer() override { static_cast<void>(cudaStreamSynchronize(side_.handle())); }

  Tensor allocate(std::int64_t count, DType dtype) override {
    assert(!on_device_);
    on_host_ = host_->allocate(count, dtype);
    pinned_ = std::make_unique<PinnedRange>(on_host_);
    on_device_ = device_.make_persistent(count, dtype);
    return on_device_;
  }

  // Copies to the host. The same stream may still copy the previous step's sum of a slice back from there.
  void start_sum(const Tensor& values) override {
    const Slice slice{
        values, on_host_.slice((values.data() - on_device_.data()) / size_of(values.dtype()), values.shape().count())};
    if (in_flight_.size() == arrived_.size()) arrived_.push_back(cuda::make_event());
    side_.wait_for_main();
    marker_.begin();
    check_cuda(cudaMemcpyAsync(slice.host.data(), values.data(), static_cast<std::size_t>(values.bytes()),
                               cudaMemcpyDeviceToHost, side_.handle()),
               "copy gradients to the host");
    marker_.end();  // the device's part is done; the host tracks its own part
    check_cuda(cudaEventRecord(arrived_[in_flight_.size()].get(), side_.handle()), "record an event");
    in_flight_.push_back(slice);
  }

  // The host waits, because it computes the sums.
  void wait() override {
    for (std::size_t i = 0; i < in_flight_.size(); ++i) {
      check_cuda(cudaEventSynchronize(arrived_[i].get()), "wait for gradients on the host");
      host_->start_sum(in_flight_[i].host);
    }
    host_->wait();
    for (const Slice& slice : in_flight_) {
      check_cuda(cudaMemcpyAsync(slice.device.data(), slice.host.data(), static_cast<std::size_t>(slice.host.bytes()),
                                 cudaMemcpyHostToDevice, side_.handle()),
                 "copy sums to the device");
    }
    in_flight_.clear();
    marker_.end_step();
    side_.make_main_wait();
  }

  SumMarks* marks() const override { return &marker_.marks(); }

  bool needs_host() const override { return true; }

  std::string description() const override { return host_->description() + ", through the host"; }

 private:
  struct Slice {
    Tensor device;
    Tensor host;
  };

  Device& device_;
  std::unique_ptr<AllReducer> host_;
  Tensor on_host_;
  std::unique_ptr<PinnedRange> pinned_;
  Tensor on_device_;
  cuda::SideStream side_;
  cuda::SumMarker marker_;
  std::vector<Slice> in_flight_;      // started, in order
  std::vector<cuda::Event> arrived_;  // by index in in_flight_
};

}  // namespace

std::unique_ptr<AllReducer> make_cuda_staged_all_reducer(Device& device, cudaStream_t stream,
                                                         std::unique_ptr<AllReducer> host) {
  return std::make_unique<CudaStagedAllReducer>(device, stream, std::move(host));
}

}  // namespace lockstep
