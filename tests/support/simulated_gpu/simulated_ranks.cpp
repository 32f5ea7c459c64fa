#include "support/simulated_gpu/simulated_ranks.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>

namespace lockstep::simulated {
namespace {

constexpr unsigned most_seconds = 30;

struct Started {
  pid_t process;
  int output;
};

Started start_rank(int rank, const std::function<void(int rank)>& work) {
  std::array<int, 2> ends{};
  EXPECT_EQ(pipe(ends.data()), 0);
  const pid_t process = fork();
  if (process > 0) {
    close(ends[1]);
    return {process, ends[0]};
  }
  dup2(ends[1], STDOUT_FILENO);
  dup2(ends[1], STDERR_FILENO);
  alarm(most_seconds);
  work(rank);
  std::fflush(nullptr);
  _exit(testing::Test::HasFailure() ? 1 : 0);
}

RankResult end_of(const Started& started) {
  std::string output;
  std::array<char, 4096> part{};
  for (ssize_t length = 0; (length = read(started.output, part.data(), part.size())) > 0;) {
    output.append(part.data(), static_cast<std::size_t>(length));
  }
  close(started.output);
  int status = 0;
  waitpid(started.process, &status, 0);
  return {WIFEXITED(status) && WEXITSTATUS(status) == 0, WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, output};
}

}  // namespace

std::vector<RankResult> run_ranks(int ranks, const std::function<void(int rank)>& work) {
  std::fflush(nullptr);
  std::vector<Started> started;
  for (int rank = 0; rank < ranks; ++rank) started.push_back(start_rank(rank, work));
  std::vector<RankResult> results;
  for (const Started& one : started) results.push_back(end_of(one));
  return results;
}

void SimulatedNcclTest::connect(const ncclUniqueId& id, int rank, int ranks) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ASSERT_EQ(complete(ncclCommInitRankConfig(&communicator_, ranks, id, rank, &config)), ncclSuccess);
}

std::vector<RankResult> SimulatedNcclTest::results(int ranks, const Settings& settings,
                                                   const std::function<void(int rank)>& work) {
  ncclUniqueId id{};
  EXPECT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  return run_ranks(ranks, [&](int rank) {
    Settings own = settings;
    own.devices = ranks;
    reset(own);
    EXPECT_EQ(cudaSetDevice(rank), cudaSuccess);
    main_ = make_stream();
    side_ = make_stream();
    connect(id, rank, ranks);
    work(rank);
  });
}

void SimulatedNcclTest::on_ranks(int ranks, const Settings& settings, const std::function<void(int rank)>& work) {
  for (const RankResult& result : results(ranks, settings, work)) EXPECT_TRUE(result.passed) << result.output;
}

void SimulatedNcclTest::expect_found(const std::string& sentence, int ranks, const Settings& settings,
                                     const std::function<void(int rank)>& work) {
  std::string outputs;
  bool is_found = false;
  for (const RankResult& result : results(ranks, settings, work)) {
    is_found |= result.aborted && result.output.find(sentence) != std::string::npos;
    outputs += result.output;
  }
  EXPECT_TRUE(is_found) << sentence << ", instead of: " << outputs;
}

ncclResult_t SimulatedNcclTest::complete(ncclResult_t code) const {
  while (code == ncclInProgress) {
    ncclResult_t state = ncclSuccess;
    EXPECT_EQ(ncclCommGetAsyncError(communicator_, &state), ncclSuccess);
    code = state;
  }
  return code;
}

ncclResult_t SimulatedNcclTest::sum(const float* from, float* to, std::size_t count, cudaStream_t stream) const {
  return complete(ncclAllReduce(from, to, count, ncclFloat32, ncclSum, communicator_, stream));
}

ncclResult_t SimulatedNcclTest::leave() const {
  const ncclResult_t finalized = complete(ncclCommFinalize(communicator_));
  return finalized == ncclSuccess ? ncclCommDestroy(communicator_) : finalized;
}

}  // namespace lockstep::simulated
