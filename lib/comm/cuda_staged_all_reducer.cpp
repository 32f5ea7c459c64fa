#include "comm/cuda_staged_all_reducer.hpp"

#include <algorithm>
#include <array>
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
               "pin the memory that ranks exchange");
  }
  PinnedRange(const PinnedRange&) = delete;
  PinnedRange& operator=(const PinnedRange&) = delete;
  ~PinnedRange() { static_cast<void>(cudaHostUnregister(address_)); }

 private:
  std::byte* address_;
};

class CudaStagedAllReducer final : public AllReducer {
 public:
  CudaStagedAllReducer(Device& device, cudaStream_t stream, int rank, std::unique_ptr<AllReducer> host)
      : device_(device), rank_(rank), host_(std::move(host)), side_(stream), marker_(device, side_.handle()) {}

  // Copies may be in flight.
  ~CudaStagedAllReducer() override { static_cast<void>(cudaStreamSynchronize(side_.handle())); }

  Tensor allocate(std::int64_t count, DType dtype) override {
    const Tensor host = host_->allocate(count, dtype);
    areas_.push_back({host, std::make_unique<PinnedRange>(host), device_.make_persistent(count, dtype)});
    return areas_.back().device;
  }

  void start_sum(const Tensor& values) override {
    const SlicePart all{0, values.shape().count()};
    start(&AllReducer::start_sum, values, all, {all});
  }

  SlicePart part_of(const Tensor& values, int rank) const override { return host_->part_of(values, rank); }
  void start_reduce_scatter(const Tensor& values) override {
    start(&AllReducer::start_reduce_scatter, values, {0, values.shape().count()}, {part_of(values, rank_)});
  }
  void start_all_gather(const Tensor& values) override {
    const SlicePart own = part_of(values, rank_);
    const std::int64_t end = own.first + own.count;
    start(&AllReducer::start_all_gather, values, own, {{{0, own.first}, {end, values.shape().count() - end}}});
  }

  // The host waits, because it computes the sums.
  void wait() override {
    for (std::size_t i = 0; i < in_flight_.size(); ++i) {
      check_cuda(cudaEventSynchronize(arrived_[i].get()), "wait for the copies on the host");
      (host_.get()->*in_flight_[i].start)(in_flight_[i].host);
    }
    host_->wait();
    for (const Slice& slice : in_flight_) {
      for (const SlicePart& result : slice.results) copy(slice.host, slice.device, result, cudaMemcpyHostToDevice);
    }
    in_flight_.clear();
    marker_.end_step();
    side_.make_main_wait();
  }

  SumMarks* marks() const override { return &marker_.marks(); }

  bool needs_host() const override { return true; }

  std::string description() const override { return host_->description() + ", through the host"; }

 private:
  struct Area {
    Tensor host;
    std::unique_ptr<PinnedRange> pinned;
    Tensor device;
  };

  using Start = void (AllReducer::*)(const Tensor& values);
  using Results = std::array<SlicePart, 2>;  // of a slice; may be empty

  struct Slice {
    Start start;  // of the host's exchange
    Tensor device;
    Tensor host;
    Results results;  // what the exchange changes
  };

  // Copies `sent` of the slice to the host. The same stream may still copy the previous step's results of a slice back
  // from there.
  void start(Start host_start, const Tensor& values, const SlicePart& sent, const Results& results) {
    const Slice slice{host_start, values, host_copy_of(values), results};
    if (in_flight_.size() == arrived_.size()) arrived_.push_back(cuda::make_event());
    side_.wait_for_main();
    marker_.begin();
    copy(values, slice.host, sent, cudaMemcpyDeviceToHost);
    marker_.end();  // the device's part is done; the host tracks its own part
    check_cuda(cudaEventRecord(arrived_[in_flight_.size()].get(), side_.handle()), "record an event");
    in_flight_.push_back(slice);
  }

  // `values` may have another type than the area: the scratch array of a sharded optimizer lies in sums of integers.
  Tensor host_copy_of(const Tensor& values) const {
    const auto area = std::ranges::find_if(areas_, [&](const Area& one) {
      return values.data() >= one.device.data() &&
             values.data() + values.bytes() <= one.device.data() + one.device.bytes();
    });
    assert(area != areas_.end());
    return {area->host.data() + (values.data() - area->device.data()), values.bytes(), values.shape(), values.dtype(),
            Layout::plain};
  }

  void copy(const Tensor& from, const Tensor& to, const SlicePart& part, cudaMemcpyKind direction) const {
    if (part.count == 0) return;
    const Tensor source = from.slice(part.first, part.count);
    check_cuda(cudaMemcpyAsync(to.slice(part.first, part.count).data(), source.data(),
                               static_cast<std::size_t>(source.bytes()), direction, side_.handle()),
               "copy gradients or weights between the host and the device");
  }

  Device& device_;
  int rank_;
  std::unique_ptr<AllReducer> host_;
  std::vector<Area> areas_;
  cuda::SideStream side_;
  cuda::SumMarker marker_;
  std::vector<Slice> in_flight_;      // started, in order
  std::vector<cuda::Event> arrived_;  // by index in in_flight_
};

}  // namespace

std::unique_ptr<AllReducer> make_cuda_staged_all_reducer(Device& device, cudaStream_t stream, int rank,
                                                         std::unique_ptr<AllReducer> host) {
  return std::make_unique<CudaStagedAllReducer>(device, stream, rank, std::move(host));
}

}  // namespace lockstep
