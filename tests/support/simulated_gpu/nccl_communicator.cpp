#include "support/simulated_gpu/nccl_communicator.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <ranges>
#include <utility>

namespace lockstep::simulated {
namespace {

constexpr std::chrono::seconds patience{60};
constexpr std::uint64_t left_out_operation = 3;

std::string& kept_refusal() {
  static auto* const text = new std::string;
  return *text;
}

[[noreturn]] void fail(const std::string& why) {
  std::fprintf(stderr, "The simulated NCCL: %s\n", why.c_str());
  std::abort();
}

}  // namespace

ncclResult_t refuse_nccl(ncclResult_t code, std::string why) {
  kept_refusal() = std::move(why);
  return code;
}

const std::string& last_nccl_refusal() { return kept_refusal(); }

// Of the first piece of work: the slot of an earlier operation is free.
class NcclCommunicator::MayBegin final : public Condition {
 public:
  explicit MayBegin(NcclCommunicator& owner) : owner_(owner) {}
  Readiness ask() override { return owner_.readiness(owner_.exchange_.may_begin()); }
  void report_hang() override { fail(owner_.describe_wait()); }

 private:
  NcclCommunicator& owner_;
};

// Of the second one: all ranks have begun the operation. A device that is lost begins none.
class NcclCommunicator::MayEnd final : public Condition {
 public:
  explicit MayEnd(NcclCommunicator& owner) : owner_(owner) {}
  Readiness ask() override {
    const NcclExchange& exchange = owner_.exchange_;
    const std::uint64_t done = exchange.ended(owner_.rank());
    bool is_ready = true;
    for (int rank = 0; rank < exchange.ranks(); ++rank) is_ready &= exchange.begun(rank) > done;
    return owner_.readiness(is_ready || exchange.begun(owner_.rank()) == done);
  }
  void report_hang() override { fail(owner_.describe_wait()); }

 private:
  NcclCommunicator& owner_;
};

NcclCommunicator::NcclCommunicator(NcclExchange& exchange, int device)
    : exchange_(exchange),
      device_(device),
      may_begin_(std::make_shared<MayBegin>(*this)),
      may_end_(std::make_shared<MayEnd>(*this)),
      graph_hold_(std::make_shared<int>()) {}

ncclResult_t NcclCommunicator::poll() {
  if (!met_) {
    if (!exchange_.all_have_joined()) return ncclInProgress;
    met_ = true;
    if (exchange_.shares_devices()) {
      state_ = refuse_nccl(ncclInvalidUsage, "Duplicate GPU detected: two ranks use one device");
    }
  }
  if (polls_left_ > 0 && --polls_left_ == 0) state_ = std::exchange(delayed_, nullptr)();
  if (polls_left_ > 0) return ncclInProgress;
  for (int rank = 0; rank < exchange_.ranks() && state_ == ncclSuccess; ++rank) {
    if (exchange_.life(rank) != Life::aborted && !exchange_.has_died(rank)) continue;
    state_ = refuse_nccl(ncclRemoteError, fmt::format("rank {} has aborted or ended", rank));
  }
  return state_;
}

ncclResult_t NcclCommunicator::require_ready(std::string_view function) const {
  if (met_ && polls_left_ == 0) return state_;
  return refuse_nccl(ncclInvalidArgument,
                     fmt::format("{}: the communicator's previous call has not returned ncclSuccess yet", function));
}

ncclResult_t NcclCommunicator::check(const NcclCall& call) const {
  const Operation& operation = call.operation;
  const std::size_t sent = bytes_sent(operation, exchange_.own());
  const std::size_t received = bytes_received(operation, exchange_.own());
  const auto refuse = [&](const char* why) {
    return refuse_nccl(ncclInvalidArgument, fmt::format("{}: {}", describe(operation), why));
  };
  if (operation.root < 0 || operation.root >= exchange_.ranks()) {
    return refuse("there is no such root");
  }
  const auto is_right = [&](const void* memory, std::size_t bytes) {
    return bytes == 0 || gpu().memory().is_on_device(memory, bytes, device_);
  };
  if (!is_right(call.from, sent)) return refuse("the data sent are not in one block of the device's memory");
  if (!is_right(call.to, received)) return refuse("the data received do not fit in one block of the device's memory");
  if (overlaps(operation, exchange_.own(), call.from, call.to))
    return refuse("the memory sent and the memory received overlap");
  if (sent > NcclExchange::most_bytes) return refuse("the simulation exchanges 64 MiB at most");
  const Stream* const stream = gpu().find(call.stream);
  if (stream == nullptr || stream->device != device_) return refuse("the stream is of no or another device");
  return gpu().lost_error(device_) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

ncclResult_t NcclCommunicator::after_polls(std::uint64_t polls, std::function<ncclResult_t()> work) {
  if (polls == 0) return state_ = work();
  delayed_ = std::move(work);
  polls_left_ = polls;
  return ncclInProgress;
}

ncclResult_t NcclCommunicator::launch(const std::vector<NcclCall>& group) {
  return after_polls(calls_++ % 3, [this, group] { return queue(group); });
}

ncclResult_t NcclCommunicator::queue(const std::vector<NcclCall>& group) {
  for (const NcclCall& call : std::views::reverse(group)) {
    const bool counts = gpu().settings().fault == Fault::left_out_sum && rank() == 1;
    if (counts && ++seen_by_fault_ == left_out_operation) continue;
    if (queue(call) != cudaSuccess) return refuse_nccl(ncclUnhandledCudaError, "the stream takes no work");
  }
  return ncclSuccess;
}

cudaError_t NcclCommunicator::queue(const NcclCall& call) {
  Stream* const stream = gpu().find(call.stream);
  if (stream == nullptr) return cudaErrorInvalidResourceHandle;
  const auto hold = stream->capture == nullptr ? nullptr : graph_hold_;
  const WorkHandle tail = stream->tail;
  const Ends ends = stream->ends;
  cudaError_t queued = gpu().queue(
      call.stream, [this, call, hold] { return begin(call); }, may_begin_);
  if (queued != cudaSuccess) return queued;
  queued = gpu().queue(
      call.stream, [this, call, hold] { return end(call); }, may_end_);
  if (gpu().settings().fault == Fault::detached_sum) {
    stream->tail = tail;
    stream->ends = ends;
  }
  return queued;
}

cudaError_t NcclCommunicator::begin(const NcclCall& call) {
  if (life_ == Life::aborted) return cudaSuccess;
  if (has_ended()) fail(fmt::format("{} runs after its communicator was destroyed.", describe(call.operation)));
  const std::size_t bytes = bytes_sent(call.operation, exchange_.own());
  if (!gpu().memory().allows(call.from, bytes)) return cudaErrorIllegalAddress;
  exchange_.begin(call.operation, call.from, bytes);
  return cudaSuccess;
}

cudaError_t NcclCommunicator::end(const NcclCall& call) {
  if (life_ == Life::aborted) return cudaSuccess;
  require_same_operations(call);
  if (!gpu().memory().allows(call.to, bytes_received(call.operation, exchange_.own()))) return cudaErrorIllegalAddress;
  RankData data{};
  for (int other = 0; other < exchange_.ranks(); ++other) {
    data.at(static_cast<std::size_t>(other)) = exchange_.data_of(other);
  }
  combine(call.operation, exchange_.own(), data, call.to);
  exchange_.end();
  gpu().spend(0.02);
  return cudaSuccess;
}

void NcclCommunicator::require_same_operations(const NcclCall& call) const {
  if (exchange_.operation_of(rank()) != call.operation) {
    fail(fmt::format("{} and {} of rank {} run at the same time. Order them by a stream or an event.",
                     describe(exchange_.operation_of(rank())), describe(call.operation), rank()));
  }
  for (int other = 0; other < exchange_.ranks(); ++other) {
    if (exchange_.operation_of(other) == call.operation) continue;
    fail(fmt::format(
        "operation {} of the communicator is {} on rank {}, but {} on rank {}. NCCL would hang or mix up "
        "the data.",
        exchange_.ended(rank()) + 1, describe(call.operation), rank(), describe(exchange_.operation_of(other)), other));
  }
}

// Ends the program if a rank has left in order, or if none moves for too long. A rank that has died or aborted is an
// asynchronous error, which the host can find.
Readiness NcclCommunicator::readiness(bool is_ready) {
  if (is_ready || life_ == Life::aborted) return Readiness::now;
  const std::uint64_t operation = exchange_.ended(rank()) + 1;
  const auto now = std::chrono::steady_clock::now();
  if (blocked_operation_ != operation) blocked_since_ = now;
  blocked_operation_ = operation;
  bool can_move = true;
  for (int other = 0; other < exchange_.ranks(); ++other) {
    const Life life = exchange_.life(other);  // before its operations, which it may begin now
    const bool has_died = exchange_.has_died(other);
    if (exchange_.begun(other) >= operation) continue;
    if (life == Life::ended) fail(describe_wait());
    can_move &= life != Life::aborted && !has_died;
  }
  if (now - blocked_since_ > patience) fail(describe_wait());
  return can_move ? Readiness::later : Readiness::never;
}

std::string NcclCommunicator::describe_wait() const {
  const std::uint64_t operation = exchange_.ended(rank()) + 1;
  std::string text = fmt::format("rank {} waits forever in operation {} of its communicator", rank(), operation);
  if (exchange_.begun(rank()) >= operation) text += fmt::format(" ({})", describe(exchange_.operation_of(rank())));
  for (int other = 0; other < exchange_.ranks(); ++other) {
    const std::uint64_t begun = exchange_.begun(other);
    if (begun >= operation) continue;
    const char* const now = exchange_.life(other) == Life::joined ? "has begun" : "left its communicator after";
    text += fmt::format(", but rank {} {} {}", other, now, begun);
  }
  return text + ".";
}

// NCCL 2.28, init.cc: commDestroySync polls until all graphs that refer to the communicator are gone.
void NcclCommunicator::require_no_graphs(std::string_view function) const {
  if (graph_hold_.use_count() == 1) return;
  fail(
      fmt::format("{} waits forever, because a captured graph holds the communicator of rank {}. Destroy the graph "
                  "first.",
                  function, rank()));
}

void NcclCommunicator::leave(Life life) {
  life_ = life;
  exchange_.set_life(life);
}

void NcclCommunicator::finish_operations() { gpu().schedule().finish_all({may_begin_.get(), may_end_.get()}); }

ncclResult_t NcclCommunicator::finalize() {
  const std::uint64_t polls = calls_++ % 3;
  return after_polls(polls, [this] {
    finish_operations();
    require_no_graphs("ncclCommFinalize");
    leave(Life::ended);
    return ncclSuccess;
  });
}

ncclResult_t NcclCommunicator::destroy() {
  finish_operations();
  require_no_graphs("ncclCommDestroy");
  leave(Life::ended);
  return ncclSuccess;
}

// The work of operations that run ends without results.
ncclResult_t NcclCommunicator::abort() {
  const bool had_ended = has_ended();
  life_ = Life::aborted;
  finish_operations();
  require_no_graphs("ncclCommAbort");
  if (!had_ended) leave(Life::aborted);
  return ncclSuccess;
}

}  // namespace lockstep::simulated
