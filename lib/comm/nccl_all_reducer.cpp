#include "comm/nccl_all_reducer.hpp"

#include <nccl.h>

#include <cassert>
#include <chrono>
#include <cstddef>
#include <exception>
#include <span>
#include <string_view>
#include <thread>

#include "comm/check_nccl.hpp"
#include "device/cuda/half_precision.hpp"
#include "device/cuda/side_stream.hpp"
#include "device/cuda/sum_marker.hpp"

namespace lockstep {
namespace {

ncclUniqueId agree_on_id(const Communicator& world) {
  constexpr int root = 0;
  ncclUniqueId id{};
  if (world.rank() == root) check_nccl(ncclGetUniqueId(&id), "make an id for its communicator");
  world.broadcast(std::as_writable_bytes(std::span(&id, 1)), root);
  return id;
}

// A nonblocking communicator: no call can block forever on a missing rank.
class NcclCommunicator {
 public:
  NcclCommunicator(const Communicator& world, std::chrono::seconds patience)
      : patience_(patience), exceptions_(std::uncaught_exceptions()) {
    ncclUniqueId id = agree_on_id(world);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    complete(ncclCommInitRankConfig(&comm_, world.size(), id, world.rank(), &config), "connect the ranks");
  }
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;

  // While an exception unwinds the stack, the other ranks may never finalize the communicator, so it is aborted.
  ~NcclCommunicator() {
    if (comm_ == nullptr) return;
    const bool orderly = std::uncaught_exceptions() == exceptions_;
    if (orderly && poll(ncclCommFinalize(comm_)) == ncclSuccess) {
      static_cast<void>(ncclCommDestroy(comm_));
    } else {
      static_cast<void>(ncclCommAbort(comm_));
    }
  }

  ncclComm_t handle() const { return comm_; }

  // Waits until the call that returned `code` has done its part on the host. Calls of a nonblocking communicator may
  // return earlier. Only afterwards may an event be recorded behind the call.
  void complete(ncclResult_t code, std::string_view task) {
    const ncclResult_t result = poll(code);
    if (result == ncclSuccess) return;
    abort();
    require(result != ncclInProgress, Failure::other,
            "NCCL could not {} within {} s. A rank has ended or hangs, or some ranks cannot reach the network. Set "
            "NCCL_SOCKET_IFNAME, or run again with NCCL_DEBUG=INFO.",
            task, patience_.count());
    check_nccl(result, task);
  }

  // Throws if an earlier operation has failed since.
  void check_asynchronous() {
    ncclResult_t state = ncclSuccess;
    check_nccl(ncclCommGetAsyncError(comm_, &state), "tell the state of its communicator");
    if (state == ncclSuccess || state == ncclInProgress) return;
    abort();
    check_nccl(state, "sum gradients");
  }

 private:
  // Cancels the operations in flight, also on the device, without the other ranks.
  void abort() noexcept {
    if (comm_ != nullptr) static_cast<void>(ncclCommAbort(comm_));
    comm_ = nullptr;
  }

  ncclResult_t poll(ncclResult_t code) const noexcept {
    const auto deadline = std::chrono::steady_clock::now() + patience_;
    while (code == ncclInProgress && std::chrono::steady_clock::now() < deadline) {
      ncclResult_t state = ncclInProgress;
      const ncclResult_t asked = ncclCommGetAsyncError(comm_, &state);
      code = asked == ncclSuccess ? state : asked;
      if (code == ncclInProgress) std::this_thread::yield();
    }
    return code;
  }

  std::chrono::seconds patience_;
  ncclComm_t comm_ = nullptr;
  int exceptions_;
};

class NcclAllReducer final : public AllReducer {
 public:
  NcclAllReducer(Device& device, cudaStream_t stream, const Communicator& world, DType wire,
                 std::chrono::seconds patience)
      : device_(device),
        ranks_(world.size()),
        wire_(wire),
        side_(stream),
        marker_(device, side_.handle()),
        comm_(world, patience) {
    assert(wire == DType::f32 || wire == DType::bf16);
  }

  Tensor allocate(std::int64_t count, DType dtype) override {
    assert(!values_ && (dtype == DType::f32 || wire_ == DType::f32));
    values_ = device_.make_persistent(count, dtype);
    if (wire_ == DType::bf16) rounded_ = device_.make_persistent(count, wire_);
    return values_;
  }

  void start_sum(const Tensor& values) override {
    side_.wait_for_main();
    sum(values, values.dtype() == DType::i64 ? ncclInt64 : ncclFloat32);
  }

  void start_rounded_sum(const Tensor& values) override {
    if (wire_ == DType::f32) {
      start_sum(values);
      return;
    }
    const Tensor rounded = rounded_.slice(values.as<float>() - values_.as<float>(), values.shape().count());
    const cuda::CudaLaunch launch(side_.handle());
    side_.wait_for_main();
    cuda::narrow_into(launch, values, rounded);
    sum(rounded, ncclBfloat16);
    cuda::widen_into(launch, rounded, values, Accumulate::overwrite);
  }

  void wait() override {
    marker_.end_step();
    side_.make_main_wait();
  }

  SumMarks* marks() const override { return &marker_.marks(); }

  void check() override { comm_.check_asynchronous(); }

  std::string description() const override {
    int version = 0;
    check_nccl(ncclGetVersion(&version), "tell its version");
    return fmt::format("nccl {}.{}.{} ({} {}{})", version / 10000, version / 100 % 100, version % 100, ranks_,
                       ranks_ == 1 ? "rank" : "ranks", wire_ == DType::f32 ? "" : ", gradients travel in bf16");
  }

 private:
  void sum(const Tensor& values, ncclDataType_t type) {
    marker_.begin();
    comm_.complete(ncclAllReduce(values.data(), values.data(), static_cast<std::size_t>(values.shape().count()), type,
                                 ncclSum, comm_.handle(), side_.handle()),
                   "sum gradients");
    marker_.end();
  }

  Device& device_;
  int ranks_;
  DType wire_;
  Tensor values_;
  Tensor rounded_;         // copy of values_ in the wire type, element for element; empty if f32 is sent
  cuda::SideStream side_;  // must outlive the communicator that uses it, like marker_
  cuda::SumMarker marker_;
  NcclCommunicator comm_;
};

}  // namespace

std::unique_ptr<AllReducer> make_nccl_all_reducer(Device& device, cudaStream_t stream, const Communicator& world,
                                                  DType wire, std::chrono::seconds patience) {
  return std::make_unique<NcclAllReducer>(device, stream, world, wire, patience);
}

}  // namespace lockstep
