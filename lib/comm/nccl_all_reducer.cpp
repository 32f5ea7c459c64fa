#include "comm/nccl_all_reducer.hpp"

#include <nccl.h>

#include <cassert>
#include <chrono>
#include <cstddef>
#include <cstdlib>
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

// NCCL reads its variables when a communicator opens. It keeps those that are set.
void fix_order() {
  ::setenv("NCCL_ALGO", "Ring", 0);     // NOLINT(concurrency-mt-unsafe): no other thread reads variables
  ::setenv("NCCL_PROTO", "Simple", 0);  // NOLINT(concurrency-mt-unsafe)
}

// A nonblocking communicator: no call can block forever on a missing rank.
//
// If a call fails, the program ends without unwinding. Captured graphs may hold the communicator, and ncclCommAbort
// waits until they are destroyed (NCCL 2.28, init.cc: localPersistentRefs).
class NcclCommunicator {
 public:
  NcclCommunicator(const Communicator& world, const NcclOptions& options)
      : patience_(options.patience), exceptions_(std::uncaught_exceptions()) {
    if (options.order == SumOrder::fixed) fix_order();
    ncclUniqueId id = agree_on_id(world);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    complete(ncclCommInitRankConfig(&comm_, world.size(), id, world.rank(), &config), "connect the ranks");
  }
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;

  // While an exception unwinds the stack, the other ranks may never finalize the communicator, so it is aborted.
  ~NcclCommunicator() {
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
  void complete(ncclResult_t code, std::string_view task) const {
    const ncclResult_t result = poll(code);
    if (result != ncclSuccess) end_program(result, task);
  }

  // Does not wait. For calls between ncclGroupStart and complete(ncclGroupEnd()).
  void require_begun(ncclResult_t code, std::string_view task) const {
    if (code != ncclSuccess && code != ncclInProgress) end_program(code, task);
  }

  // Ends the program if an earlier operation has failed since.
  void check_asynchronous() const {
    ncclResult_t state = ncclSuccess;
    const ncclResult_t asked = ncclCommGetAsyncError(comm_, &state);
    require_begun(asked == ncclSuccess ? state : asked, "exchange gradients or weights");
  }

 private:
  // By the terminate handler, which reports the failure and calls no destructor.
  [[noreturn]] void end_program(ncclResult_t result, std::string_view task) const {
    try {
      require(result != ncclInProgress, Failure::other,
              "NCCL could not {} within {} s. A rank has ended or hangs, or some ranks cannot reach the network. Set "
              "NCCL_SOCKET_IFNAME, or run again with NCCL_DEBUG=INFO.",
              task, patience_.count());
      check_nccl(result, task);
    } catch (const Error&) {
      std::terminate();
    }
    std::terminate();
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
  NcclAllReducer(Device& device, cudaStream_t stream, const Communicator& world, const NcclOptions& options)
      : device_(device),
        rank_(world.rank()),
        ranks_(world.size()),
        wire_(options.wire),
        order_(options.order),
        side_(stream),
        marker_(device, side_.handle()),
        comm_(world, options) {
    assert(wire_ == DType::f32 || wire_ == DType::bf16);
  }

  Tensor allocate(std::int64_t count, DType dtype) override {
    assert(dtype == DType::f32 || wire_ == DType::f32);
    Tensor made = device_.make_persistent(count, dtype);
    if (!gradients_) {
      gradients_ = made;
      if (wire_ == DType::bf16) rounded_ = device_.make_persistent(count, wire_);
    }
    return made;
  }

  void start_sum(const Tensor& values) override {
    side_.wait_for_main();
    sum(values);
  }

  void start_rounded_sum(const Tensor& values) override {
    if (wire_ == DType::f32) {
      start_sum(values);
      return;
    }
    const cuda::CudaLaunch launch(side_.handle());
    const Tensor rounded = start_rounding(launch, values);
    sum(rounded);
    cuda::widen_into(launch, rounded, values, Accumulate::overwrite);
  }

  // NCCL requires equal parts. The last rank therefore has the rest, too.
  SlicePart part_of(const Tensor& values, int rank) const override {
    const std::int64_t share = share_of(values);
    const std::int64_t first = rank * share;
    return {first, rank + 1 == ranks_ ? values.shape().count() - first : share};
  }

  void start_reduce_scatter(const Tensor& values) override {
    side_.wait_for_main();
    reduce_scatter(values);
  }

  void start_rounded_reduce_scatter(const Tensor& values) override {
    if (wire_ == DType::f32) {
      start_reduce_scatter(values);
      return;
    }
    const cuda::CudaLaunch launch(side_.handle());
    const Tensor rounded = start_rounding(launch, values);
    reduce_scatter(rounded);
    const SlicePart own = part_of(values, rank_);
    if (own.count == 0) return;
    cuda::widen_into(launch, rounded.slice(own.first, own.count), values.slice(own.first, own.count),
                     Accumulate::overwrite);
  }

  void start_all_gather(const Tensor& values) override {
    side_.wait_for_main();
    all_gather(values);
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
    return fmt::format("nccl {}.{}.{} ({} {}{}{})", version / 10000, version / 100 % 100, version % 100, ranks_,
                       ranks_ == 1 ? "rank" : "ranks", order_ == SumOrder::fixed ? ", ring" : "",
                       wire_ == DType::f32 ? "" : ", gradients travel in bf16");
  }

 private:
  static ncclDataType_t type_of(const Tensor& values) {
    if (values.dtype() == DType::bf16) return ncclBfloat16;
    return values.dtype() == DType::i64 ? ncclInt64 : ncclFloat32;
  }

  static std::size_t count_of(const Tensor& values) { return static_cast<std::size_t>(values.shape().count()); }

  // What each rank owns of a slice. A multiple of part_alignment.
  std::int64_t share_of(const Tensor& values) const {
    return values.shape().count() / ranks_ / part_alignment * part_alignment;
  }
  int last_rank() const { return ranks_ - 1; }

  // Rounds `values` on the side stream. Returns the result.
  Tensor start_rounding(const cuda::CudaLaunch& launch, const Tensor& values) {
    const Tensor rounded = rounded_.slice(values.as<float>() - gradients_.as<float>(), values.shape().count());
    side_.wait_for_main();
    cuda::narrow_into(launch, values, rounded);
    return rounded;
  }

  void sum(const Tensor& values) {
    marker_.begin();
    comm_.complete(ncclAllReduce(values.data(), values.data(), count_of(values), type_of(values), ncclSum,
                                 comm_.handle(), side_.handle()),
                   "sum gradients");
    marker_.end();
  }

  // In place: a rank's result is where its share was.
  void reduce_scatter(const Tensor& values) {
    exchange(
        values, "reduce-scatter gradients",
        [&](const Tensor& own) {
          return ncclReduceScatter(values.data(), own.data(), count_of(own), type_of(values), ncclSum, comm_.handle(),
                                   side_.handle());
        },
        [&](const Tensor& rest) {
          return ncclReduce(rest.data(), rest.data(), count_of(rest), type_of(values), ncclSum, last_rank(),
                            comm_.handle(), side_.handle());
        });
  }

  void all_gather(const Tensor& values) {
    exchange(
        values, "all-gather weights",
        [&](const Tensor& own) {
          return ncclAllGather(own.data(), values.data(), count_of(own), type_of(values), comm_.handle(),
                               side_.handle());
        },
        [&](const Tensor& rest) {
          return ncclBroadcast(rest.data(), rest.data(), count_of(rest), type_of(values), last_rank(), comm_.handle(),
                               side_.handle());
        });
  }

  // One group of calls: for this rank's share of `values`, and for the rest, which belongs to the last rank.
  template <typename OnShare, typename OnRest>
  void exchange(const Tensor& values, std::string_view task, const OnShare& on_share, const OnRest& on_rest) {
    const std::int64_t share = share_of(values);
    const std::int64_t end = ranks_ * share;
    const std::int64_t count = values.shape().count();
    marker_.begin();
    comm_.require_begun(ncclGroupStart(), task);
    if (share > 0) comm_.require_begun(on_share(values.slice(rank_ * share, share)), task);
    if (end < count) comm_.require_begun(on_rest(values.slice(end, count - end)), task);
    comm_.complete(ncclGroupEnd(), task);
    marker_.end();
  }

  Device& device_;
  int rank_;
  int ranks_;
  DType wire_;
  SumOrder order_;
  Tensor gradients_;       // from the first allocation
  Tensor rounded_;         // copy of gradients_ in the wire type, element for element; empty if f32 is sent
  cuda::SideStream side_;  // must outlive the communicator that uses it, like marker_
  cuda::SumMarker marker_;
  NcclCommunicator comm_;
};

}  // namespace

std::unique_ptr<AllReducer> make_nccl_all_reducer(Device& device, cudaStream_t stream, const Communicator& world,
                                                  const NcclOptions& options) {
  return std::make_unique<NcclAllReducer>(device, stream, world, options);
}

}  // namespace lockstep
