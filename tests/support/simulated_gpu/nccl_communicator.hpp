// A nonblocking communicator of the simulated NCCL, as NCCL 2.28 behaves where its reference leaves something open.
// What would hang there, or mix up data, ends the program with a sentence.
//
// An operation is two pieces of work of its stream: one publishes this rank's part, the other waits for those of all
// ranks and writes the result. Between them, other streams may run. Ranks add in their order.
#pragma once

#include <nccl.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "support/simulated_gpu/gpu.hpp"
#include "support/simulated_gpu/nccl_exchange.hpp"

namespace lockstep::simulated {

struct NcclCall {
  Operation operation;
  const std::byte* from;
  std::byte* to;
  cudaStream_t stream;
};

class NcclCommunicator {
 public:
  NcclCommunicator(NcclExchange& exchange, int device);

  int device() const { return device_; }
  bool has_ended() const { return life_ != Life::joined; }

  // What the last call has come to, as ncclCommGetAsyncError tells it. Each call brings it forward.
  ncclResult_t poll();
  // Success if the next call may be made.
  ncclResult_t require_ready(std::string_view function) const;

  ncclResult_t check(const NcclCall& call) const;
  // Queues the operations of a group, the last one first, because nothing orders them: at once, at the first poll or at
  // the second one.
  ncclResult_t launch(const std::vector<NcclCall>& group);

  ncclResult_t finalize();
  ncclResult_t destroy();
  ncclResult_t abort();

 private:
  class MayBegin;
  class MayEnd;

  int rank() const { return exchange_.rank(); }
  ncclResult_t after_polls(std::uint64_t polls, std::function<ncclResult_t()> work);
  ncclResult_t queue(const std::vector<NcclCall>& group);
  cudaError_t queue(const NcclCall& call);
  cudaError_t begin(const NcclCall& call);
  cudaError_t end(const NcclCall& call);
  void require_same_operations(const NcclCall& call) const;

  Readiness readiness(bool is_ready);
  std::string describe_wait() const;
  void finish_operations();
  void require_no_graphs(std::string_view function) const;
  void leave(Life life);

  NcclExchange& exchange_;
  int device_;
  Life life_ = Life::joined;
  ncclResult_t state_ = ncclSuccess;
  bool met_ = false;
  std::uint64_t calls_ = 0;       // that it has taken
  std::uint64_t polls_left_ = 0;  // until it does the last one
  std::function<ncclResult_t()> delayed_;
  std::uint64_t seen_by_fault_ = 0;  // operations, by the fault left_out_sum
  std::shared_ptr<Condition> may_begin_;
  std::shared_ptr<Condition> may_end_;
  std::shared_ptr<const int> graph_hold_;  // shared by the graphs that have captured operations
  std::uint64_t blocked_operation_ = 0;
  std::chrono::steady_clock::time_point blocked_since_{};
};

// Keeps the sentence for ncclGetLastError. Returns `code`.
ncclResult_t refuse_nccl(ncclResult_t code, std::string why);
const std::string& last_nccl_refusal();

}  // namespace lockstep::simulated
