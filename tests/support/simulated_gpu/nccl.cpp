// The part of NCCL that lib uses: its functions check their arguments, and collect the operations of a group.
#include <fmt/format.h>
#include <nccl.h>

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "support/simulated_gpu/nccl_communicator.hpp"

namespace lockstep::simulated {
namespace {

// Whether the handle is valid. Never freed, because queued work and graphs may refer to one that is destroyed.
std::map<NcclCommunicator*, bool>& communicators() {
  static auto* const all = new std::map<NcclCommunicator*, bool>;
  return *all;
}

NcclCommunicator* find(ncclComm_t handle) {
  auto* const found = reinterpret_cast<NcclCommunicator*>(handle);
  const auto known = communicators().find(found);
  return known != communicators().end() && known->second ? found : nullptr;
}

ncclResult_t refuse_handle(const char* function) {
  return refuse_nccl(ncclInvalidArgument,
                     fmt::format("{}: there is no such communicator, or it is destroyed", function));
}

struct GroupedCall {
  NcclCommunicator* communicator;
  NcclCall call;
};

// The calls between ncclGroupStart and ncclGroupEnd of a thread.
struct Group {
  int depth = 0;
  ncclResult_t error = ncclSuccess;
  std::vector<GroupedCall> calls;
};
thread_local Group open_group;

// Each communicator gets its calls at once.
ncclResult_t launch(const std::vector<GroupedCall>& calls) {
  ncclResult_t result = ncclSuccess;
  std::set<NcclCommunicator*> launched;
  for (const GroupedCall& first : calls) {
    if (!launched.insert(first.communicator).second) continue;
    std::vector<NcclCall> own;
    for (const GroupedCall& one : calls) {
      if (one.communicator == first.communicator) own.push_back(one.call);
    }
    const ncclResult_t code = first.communicator->launch(own);
    if (code != ncclSuccess) result = code;
  }
  return result;
}

ncclResult_t check(NcclCommunicator* communicator, const NcclCall& call, ncclRedOp_t reduction) {
  const std::string name = describe(call.operation);
  if (communicator == nullptr) return refuse_handle(name.c_str());
  if (const ncclResult_t state = communicator->require_ready(name); state != ncclSuccess) return state;
  if (communicator->has_ended()) return refuse_nccl(ncclInvalidUsage, name + ": the communicator is finalized");
  if (reduction != ncclSum || element_bytes(call.operation.type) == 0) {
    return refuse_nccl(ncclInvalidArgument, name + ": the simulation adds f32, bf16 and i64 only");
  }
  if (communicator->device() != current_device()) {
    return refuse_nccl(ncclInvalidUsage, name + ": another device is current");
  }
  return communicator->check(call);
}

// Every function is such a call: one at a time.
template <typename Act>
ncclResult_t nccl_call(const Act& act) {
  const std::lock_guard lock(mutex());
  const ncclResult_t code = act();
  gpu().schedule().advance();
  return code;
}

ncclResult_t take(ncclComm_t handle, const NcclCall& call, ncclRedOp_t reduction = ncclSum) {
  return nccl_call([&] {
    NcclCommunicator* const communicator = find(handle);
    const ncclResult_t code = check(communicator, call, reduction);
    if (code != ncclSuccess) {
      if (open_group.depth > 0) open_group.error = code;
      return code;
    }
    if (call.operation.count == 0) return ncclSuccess;
    if (open_group.depth == 0) return communicator->launch({call});
    open_group.calls.push_back({communicator, call});
    return ncclSuccess;
  });
}

const std::byte* sent(const void* memory) { return static_cast<const std::byte*>(memory); }
std::byte* received(void* memory) { return static_cast<std::byte*>(memory); }

}  // namespace
}  // namespace lockstep::simulated

using namespace lockstep::simulated;

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclUnhandledCudaError:
      return "unhandled cuda error";
    case ncclSystemError:
      return "unhandled system error";
    case ncclInternalError:
      return "internal error";
    case ncclInvalidArgument:
      return "invalid argument";
    case ncclInvalidUsage:
      return "invalid usage";
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    case ncclInProgress:
      return "NCCL operation in progress";
    default:
      return "unknown result code";
  }
}

const char* ncclGetLastError(ncclComm_t) { return last_nccl_refusal().c_str(); }

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  *id = NcclExchange::make_id();
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* made, int ranks, ncclUniqueId id, int rank, ncclConfig_t* config) {
  return nccl_call([&] {
    *made = nullptr;
    if (ranks < 1 || ranks > most_nccl_ranks || rank < 0 || rank >= ranks) {
      return refuse_nccl(ncclInvalidArgument, fmt::format("there is no rank {} of {}", rank, ranks));
    }
    const ncclConfig_t initial = NCCL_CONFIG_INITIALIZER;
    if (config == nullptr || config->magic != initial.magic || config->blocking != 0) {
      return refuse_nccl(ncclInvalidArgument, "the simulation takes configurations of nonblocking communicators only");
    }
    NcclExchange* const exchange = NcclExchange::join(id, {rank, ranks}, current_device());
    if (exchange == nullptr) return refuse_nccl(ncclSystemError, "the process that made the id is gone");
    auto* const communicator = new NcclCommunicator(*exchange, current_device());
    communicators()[communicator] = true;
    *made = reinterpret_cast<ncclComm_t>(communicator);
    return ncclInProgress;
  });
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t handle, ncclResult_t* state) {
  return nccl_call([&] {
    NcclCommunicator* const communicator = find(handle);
    if (communicator == nullptr) return refuse_handle("ncclCommGetAsyncError");
    *state = communicator->poll();
    return ncclSuccess;
  });
}

ncclResult_t ncclGroupStart() {
  ++open_group.depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  return nccl_call([&] {
    if (open_group.depth == 0) return refuse_nccl(ncclInvalidUsage, "ncclGroupEnd without ncclGroupStart");
    if (--open_group.depth > 0) return ncclSuccess;
    const Group ended = std::exchange(open_group, {});
    return ended.error == ncclSuccess ? launch(ended.calls) : ended.error;
  });
}

ncclResult_t ncclAllReduce(const void* from, void* to, std::size_t count, ncclDataType_t type, ncclRedOp_t reduction,
                           ncclComm_t communicator, cudaStream_t stream) {
  return take(communicator, {{Collective::all_reduce, type, count, 0}, sent(from), received(to), stream}, reduction);
}

ncclResult_t ncclReduce(const void* from, void* to, std::size_t count, ncclDataType_t type, ncclRedOp_t reduction,
                        int root, ncclComm_t communicator, cudaStream_t stream) {
  return take(communicator, {{Collective::reduce, type, count, root}, sent(from), received(to), stream}, reduction);
}

ncclResult_t ncclReduceScatter(const void* from, void* to, std::size_t count, ncclDataType_t type,
                               ncclRedOp_t reduction, ncclComm_t communicator, cudaStream_t stream) {
  return take(communicator, {{Collective::reduce_scatter, type, count, 0}, sent(from), received(to), stream},
              reduction);
}

ncclResult_t ncclAllGather(const void* from, void* to, std::size_t count, ncclDataType_t type, ncclComm_t communicator,
                           cudaStream_t stream) {
  return take(communicator, {{Collective::all_gather, type, count, 0}, sent(from), received(to), stream});
}

ncclResult_t ncclBroadcast(const void* from, void* to, std::size_t count, ncclDataType_t type, int root,
                           ncclComm_t communicator, cudaStream_t stream) {
  return take(communicator, {{Collective::broadcast, type, count, root}, sent(from), received(to), stream});
}

ncclResult_t ncclCommFinalize(ncclComm_t handle) {
  return nccl_call([&] {
    NcclCommunicator* const communicator = find(handle);
    if (communicator == nullptr) return refuse_handle("ncclCommFinalize");
    const ncclResult_t state = communicator->require_ready("ncclCommFinalize");
    if (state != ncclSuccess) return state;
    if (communicator->has_ended()) return refuse_nccl(ncclInvalidArgument, "ncclCommFinalize: it is finalized");
    return communicator->finalize();
  });
}

ncclResult_t ncclCommDestroy(ncclComm_t handle) {
  return nccl_call([&] {
    NcclCommunicator* const communicator = find(handle);
    if (communicator == nullptr) return refuse_handle("ncclCommDestroy");
    const ncclResult_t state = communicator->require_ready("ncclCommDestroy");
    if (state != ncclSuccess) return state;
    communicators()[communicator] = false;
    return communicator->destroy();
  });
}

ncclResult_t ncclCommAbort(ncclComm_t handle) {
  return nccl_call([&] {
    NcclCommunicator* const communicator = find(handle);
    if (communicator == nullptr) return refuse_handle("ncclCommAbort");
    communicators()[communicator] = false;
    return communicator->abort();
  });
}

}  // extern "C"
