// The order in which NCCL's functions are called, by the rules for nonblocking communicators: one that begins to sum
// may not be waited for by an event before it has begun, and no call may wait for a rank that will not come.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nccl.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <exception>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/current_error.hpp"
#include "base/error.hpp"
#include "comm/nccl_all_reducer.hpp"
#include "device/cuda/passes/mark_kernels.hpp"
#include "device/cuda/side_stream.hpp"
#include "support/device/hosted_cuda_device.hpp"
#include "support/device/noted_cuda.hpp"

namespace lockstep {
namespace {

using cuda::noted_cuda;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

ncclResult_t first_answer = ncclSuccess;   // of calls that may take their time
std::deque<ncclResult_t> states;           // that a communicator tells of itself, one after another
ncclResult_t lasting_state = ncclSuccess;  // when those are told
std::function<void()> while_summing = [] {};
std::string algorithm_at_init;  // "Ring Simple": NCCL_ALGO and NCCL_PROTO
ncclComm_t const communicator = reinterpret_cast<ncclComm_t>(&states);

ncclResult_t note(const std::string& call, ncclResult_t answer) {
  noted_cuda().calls.push_back(call);
  return answer;
}

ncclResult_t next_state() {
  if (states.empty()) return lasting_state;
  const ncclResult_t state = states.front();
  states.pop_front();
  return state;
}

class NcclCallsTest : public testing::Test {
 protected:
  NcclCallsTest() {
    noted_cuda() = {};
    noted_cuda().launched = [](void** arguments) { (*static_cast<const cuda::MarkSum*>(arguments[1]))(0); };
    while_summing = [] {};
    first_answer = ncclSuccess;
    states.clear();
    lasting_state = ncclSuccess;
  }

  std::unique_ptr<AllReducer> make(std::chrono::seconds patience = nccl_patience) {
    return make_nccl_all_reducer(*device_, stream_.get(), world_, {.patience = patience});
  }
  static std::vector<std::string> calls() { return std::exchange(noted_cuda().calls, {}); }
  static std::ptrdiff_t count(const std::vector<std::string>& calls, const std::string& call) {
    return std::ranges::count(calls, call);
  }

  // Runs `work`, whose failure the terminate handler reports: in a process of its own.
  static void ends(const std::function<void()>& work) {
    calls();
    std::set_terminate([] {
      const std::vector<std::string> since = calls();
      fmt::print(stderr, "{} {} aborts, {} ends\n", current_error().what(), count(since, "ncclCommAbort"),
                 count(since, "ncclCommFinalize") + count(since, "ncclCommDestroy"));
      std::_Exit(1);
    });
    try {
      work();
    } catch (const Error&) {
      std::_Exit(2);
    }
    std::_Exit(3);
  }

  const Communicator world_{MPI_COMM_SELF};
  std::unique_ptr<Device> device_ = open_hosted_cuda_device({});
  cuda::Stream stream_ = cuda::make_stream();
};

TEST_F(NcclCallsTest, ranks_meet_without_a_call_that_waits) {
  first_answer = ncclInProgress;
  states = {ncclInProgress, ncclInProgress, ncclSuccess};
  const auto reducer = make();
  const std::vector<std::string> met = calls();
  EXPECT_THAT(met, Contains("ncclGetUniqueId"));
  EXPECT_THAT(met, Contains("ncclCommInitRankConfig, rank 0 of 1, blocking 0"));
  EXPECT_EQ(count(met, "ncclCommGetAsyncError"), 3);
  EXPECT_EQ(met.back(), "ncclCommGetAsyncError");
}

// NCCL 2.28 can neither abort nor destroy a communicator that captured graphs hold: a failure was reported after both.
TEST_F(NcclCallsTest, ranks_that_do_not_come_end_the_program_without_an_abort) {
  first_answer = ncclInProgress;
  lasting_state = ncclInProgress;
  EXPECT_EXIT(ends([this] { make(std::chrono::seconds(0)); }), testing::ExitedWithCode(1),
              "within 0 s.*NCCL_SOCKET_IFNAME.*NCCL_DEBUG=INFO.*0 aborts, 0 ends");
}

TEST_F(NcclCallsTest, a_sum_has_begun_before_an_event_is_recorded_behind_it) {
  const auto reducer = make();
  const Tensor values = reducer->allocate(64, DType::f32);
  calls();
  first_answer = ncclInProgress;
  states = {ncclInProgress, ncclSuccess};
  reducer->start_sum(values.slice(16, 32));
  reducer->wait();
  EXPECT_THAT(calls(),
              ElementsAre(StartsWith("cudaEventRecord("), StartsWith("cudaStreamWaitEvent("),
                          StartsWith("cudaLaunchKernel(1 block"), "ncclAllReduce, 32 in place", "ncclCommGetAsyncError",
                          "ncclCommGetAsyncError", StartsWith("cudaLaunchKernel(1 block"),
                          StartsWith("cudaEventRecord("), StartsWith("cudaStreamWaitEvent(")));
}

// NCCL's reduce-scatter and all-gather take equal shares. One rank owns its share and what remains after it.
TEST_F(NcclCallsTest, a_share_and_the_rest_travel_in_one_group_of_calls) {
  const auto reducer = make();
  reducer->allocate(64, DType::f32);
  const Tensor weights = reducer->allocate(64, DType::f32);
  calls();
  first_answer = ncclInProgress;
  states = {ncclSuccess};
  reducer->start_reduce_scatter(weights.slice(0, 40));
  EXPECT_THAT(calls(), ElementsAre(StartsWith("cudaEventRecord("), StartsWith("cudaStreamWaitEvent("),
                                   StartsWith("cudaLaunchKernel(1 block"), "ncclGroupStart",
                                   "ncclReduceScatter, 32 of f32 to 0", "ncclReduce, 8 in place to rank 0",
                                   "ncclGroupEnd", "ncclCommGetAsyncError", StartsWith("cudaLaunchKernel(1 block")));
  first_answer = ncclSuccess;
  reducer->start_all_gather(weights.slice(0, 40));
  const std::vector<std::string> gathered = calls();
  EXPECT_THAT(std::vector(gathered.begin() + 3, gathered.end() - 1),
              ElementsAre("ncclGroupStart", "ncclAllGather, 32 from 0", "ncclBroadcast, 8 in place from rank 0",
                          "ncclGroupEnd"));
  reducer->start_all_gather(weights.slice(0, 32));
  EXPECT_THAT(calls(), Not(Contains(StartsWith("ncclBroadcast"))));
  reducer->start_reduce_scatter(weights.slice(0, 9));
  EXPECT_THAT(calls(), Not(Contains(StartsWith("ncclReduceScatter"))));
  EXPECT_EQ(reducer->part_of(weights.slice(0, 40), 0), (SlicePart{0, 40}));
}

// Values are rounded before, and only this rank's sums widened behind.
TEST_F(NcclCallsTest, a_rounded_reduce_scatter_travels_in_bf16) {
  const auto reducer = make_nccl_all_reducer(*device_, stream_.get(), world_, {.wire = DType::bf16});
  const Tensor gradients = reducer->allocate(64, DType::f32);
  reducer->allocate(64, DType::f32);
  noted_cuda().launched = [](void**) {};
  calls();
  reducer->start_rounded_reduce_scatter(gradients.slice(16, 32));
  EXPECT_THAT(calls(), ElementsAre(StartsWith("cudaEventRecord("), StartsWith("cudaStreamWaitEvent("),
                                   StartsWith("cudaLaunchKernel("), StartsWith("cudaLaunchKernel(1 block"),
                                   "ncclGroupStart", "ncclReduceScatter, 32 of bf16 to 0", "ncclGroupEnd",
                                   StartsWith("cudaLaunchKernel(1 block"), StartsWith("cudaLaunchKernel(")));
}

TEST_F(NcclCallsTest, the_device_marks_each_sum_before_and_behind_it) {
  const auto reducer = make();
  const Tensor values = reducer->allocate(64, DType::f32);
  ASSERT_NE(reducer->marks(), nullptr);
  std::vector<SumMarks> within;
  while_summing = [&] { within.push_back(read_marks(*reducer->marks())); };
  for (int step = 0; step < 2; ++step) {
    for (const std::int64_t first : {0, 32}) reducer->start_sum(values.slice(first, 32));
    reducer->wait();
  }
  ASSERT_EQ(within.size(), 4U);
  for (std::uint64_t sum = 0; sum < 4; ++sum) {
    EXPECT_EQ(within[sum].begun, sum + 1);
    EXPECT_EQ(within[sum].ended, sum);
    EXPECT_EQ(within[sum].bucket, sum % 2);
  }
  EXPECT_EQ(read_marks(*reducer->marks()).ended, 4U);
}

TEST_F(NcclCallsTest, marks_have_reached_the_host_before_their_memory_goes) {
  auto reducer = make();
  calls();
  reducer.reset();
  const std::vector<std::string> ended = calls();
  const auto synchronized = std::ranges::find_if(
      ended, [](const std::string& call) { return call.starts_with("cudaStreamSynchronize(stream "); });
  EXPECT_LT(std::ranges::find(ended, "ncclCommDestroy"), synchronized);
  EXPECT_LT(synchronized, std::ranges::find(ended, "cudaFreeHost()"));
}

TEST_F(NcclCallsTest, a_sum_that_fails_ends_the_program_without_an_abort) {
  const auto reducer = make();
  const Tensor values = reducer->allocate(64, DType::f32);
  reducer->check();
  lasting_state = ncclInProgress;
  reducer->check();  // is no failure
  lasting_state = ncclRemoteError;
  const std::string told = "exchange gradients or weights.*NCCL_DEBUG=INFO.*0 aborts, 0 ends";
  EXPECT_EXIT(ends([&] { reducer->check(); }), testing::ExitedWithCode(1), told);
  first_answer = ncclSystemError;
  EXPECT_EXIT(ends([&] { reducer->start_sum(values); }), testing::ExitedWithCode(1), "sum gradients.*0 aborts, 0 ends");
  EXPECT_EXIT(ends([&] { reducer->start_all_gather(values); }), testing::ExitedWithCode(1),
              "all-gather weights.*0 aborts, 0 ends");
}

// A user's choice is kept. Without --deterministic, NCCL chooses.
TEST_F(NcclCallsTest, a_fixed_order_is_that_of_rings) {
  ::unsetenv("NCCL_ALGO");
  ::setenv("NCCL_PROTO", "LL", 1);
  make();
  EXPECT_EQ(algorithm_at_init, "LL");
  const auto ring = make_nccl_all_reducer(*device_, stream_.get(), world_, {.order = SumOrder::fixed});
  EXPECT_EQ(algorithm_at_init, "Ring LL");
  EXPECT_THAT(ring->description(), HasSubstr("(1 rank, ring)"));
  ::unsetenv("NCCL_PROTO");
  make_nccl_all_reducer(*device_, stream_.get(), world_, {.order = SumOrder::fixed});
  EXPECT_EQ(algorithm_at_init, "Ring Simple");
  ::unsetenv("NCCL_ALGO");
  ::unsetenv("NCCL_PROTO");
}

TEST_F(NcclCallsTest, an_orderly_end_waits_for_all_ranks_and_one_by_an_exception_for_none) {
  auto reducer = make();
  calls();
  reducer.reset();
  std::vector<std::string> ended = calls();
  EXPECT_LT(std::ranges::find(ended, "ncclCommFinalize"), std::ranges::find(ended, "ncclCommDestroy"));
  EXPECT_EQ(count(ended, "ncclCommAbort"), 0);
  try {
    [[maybe_unused]] const auto unwound = make();
    throw std::runtime_error("no");
  } catch (const std::runtime_error&) {
    ended = calls();
  }
  EXPECT_EQ(count(ended, "ncclCommAbort"), 1);
  EXPECT_EQ(count(ended, "ncclCommFinalize") + count(ended, "ncclCommDestroy"), 0);
}

}  // namespace
}  // namespace lockstep

// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming): the linker's names
using namespace lockstep;

extern "C" {

ncclResult_t __wrap_ncclGetUniqueId(ncclUniqueId* id) {
  *id = {};
  return note("ncclGetUniqueId", ncclSuccess);
}
ncclResult_t __wrap_ncclCommInitRankConfig(ncclComm_t* made, int ranks, ncclUniqueId, int rank, ncclConfig_t* config) {
  *made = communicator;
  algorithm_at_init.clear();
  for (const char* name : {"NCCL_ALGO", "NCCL_PROTO"}) {
    // careful-environment: as NCCL does
    const char* const value = std::getenv(name);
    if (value != nullptr) algorithm_at_init += (algorithm_at_init.empty() ? "" : " ") + std::string(value);
  }
  return note(fmt::format("ncclCommInitRankConfig, rank {} of {}, blocking {}", rank, ranks, config->blocking),
              first_answer);
}
ncclResult_t __wrap_ncclCommGetAsyncError(ncclComm_t, ncclResult_t* state) {
  *state = next_state();
  return note("ncclCommGetAsyncError", ncclSuccess);
}
ncclResult_t __wrap_ncclAllReduce(const void* from, void* to, std::size_t count, ncclDataType_t, ncclRedOp_t,
                                  ncclComm_t, cudaStream_t) {
  while_summing();
  return note(fmt::format("ncclAllReduce, {}{}", count, from == to ? " in place" : ""), first_answer);
}
ncclResult_t __wrap_ncclReduceScatter(const void* from, void* to, std::size_t count, ncclDataType_t type, ncclRedOp_t,
                                      ncclComm_t, cudaStream_t) {
  const auto offset = static_cast<std::byte*>(to) - static_cast<const std::byte*>(from);
  const char* const name = type == ncclBfloat16 ? "bf16" : "f32";
  return note(fmt::format("ncclReduceScatter, {} of {} to {}", count, name, offset), first_answer);
}
ncclResult_t __wrap_ncclReduce(const void* from, void* to, std::size_t count, ncclDataType_t, ncclRedOp_t, int root,
                               ncclComm_t, cudaStream_t) {
  return note(fmt::format("ncclReduce, {}{} to rank {}", count, from == to ? " in place" : "", root), first_answer);
}
ncclResult_t __wrap_ncclAllGather(const void* from, void* to, std::size_t count, ncclDataType_t, ncclComm_t,
                                  cudaStream_t) {
  const auto offset = static_cast<const std::byte*>(from) - static_cast<std::byte*>(to);
  return note(fmt::format("ncclAllGather, {} from {}", count, offset), first_answer);
}
ncclResult_t __wrap_ncclBroadcast(const void* from, void* to, std::size_t count, ncclDataType_t, int root, ncclComm_t,
                                  cudaStream_t) {
  return note(fmt::format("ncclBroadcast, {}{} from rank {}", count, from == to ? " in place" : "", root),
              first_answer);
}
ncclResult_t __wrap_ncclGroupStart() { return note("ncclGroupStart", ncclSuccess); }
ncclResult_t __wrap_ncclGroupEnd() { return note("ncclGroupEnd", first_answer); }
ncclResult_t __wrap_ncclCommFinalize(ncclComm_t) { return note("ncclCommFinalize", ncclSuccess); }
ncclResult_t __wrap_ncclCommDestroy(ncclComm_t) { return note("ncclCommDestroy", ncclSuccess); }
ncclResult_t __wrap_ncclCommAbort(ncclComm_t) { return note("ncclCommAbort", ncclSuccess); }

}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)
