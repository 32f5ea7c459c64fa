// Ranks of tests of the simulated NCCL: each is a process of its own, with the GPU that has its number.
#pragma once

#include <nccl.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "support/simulated_gpu/simulated_fixture.hpp"

namespace lockstep::simulated {

struct RankResult {
  bool passed;         // ended with code 0 and without a failed expectation
  bool aborted;        // by the simulation
  std::string output;  // stdout and stderr
};

// Runs `work` as each rank. It ends the process of a rank that takes 30 s.
std::vector<RankResult> run_ranks(int ranks, const std::function<void(int rank)>& work);

class SimulatedNcclTest : public SimulatedRuntimeTest {
 protected:
  // Runs `work` as each rank, with a new GPU and a connected communicator. Expects that all ranks pass.
  void on_ranks(int ranks, const Settings& settings, const std::function<void(int rank)>& work);
  // Expects that the simulation ends at least one rank, with a sentence that contains `sentence`.
  void expect_found(const std::string& sentence, int ranks, const Settings& settings,
                    const std::function<void(int rank)>& work);

  // Calls until `code` and the communicator's state are something else than ncclInProgress.
  ncclResult_t complete(ncclResult_t code) const;
  ncclResult_t sum(float* values, std::size_t count) const { return sum(values, values, count, main_); }
  ncclResult_t sum(const float* from, float* to, std::size_t count, cudaStream_t stream) const;
  ncclResult_t leave() const;  // finalizes and destroys the communicator

  // Device memory with these values, written by the main stream.
  template <typename Element>
  Element* device_values(const std::vector<Element>& values) const {
    auto* const memory = reinterpret_cast<Element*>(device_memory(values.size() * sizeof(Element)));
    EXPECT_EQ(cudaMemcpyAsync(memory, values.data(), values.size() * sizeof(Element), cudaMemcpyHostToDevice, main_),
              cudaSuccess);
    return memory;
  }
  // After all work of the main stream.
  template <typename Element>
  std::vector<Element> values_of(const Element* memory, std::size_t count) const {
    std::vector<Element> values(count);
    EXPECT_EQ(to_host(values.data(), memory, count * sizeof(Element), main_), cudaSuccess);
    return values;
  }

  ncclComm_t communicator_ = nullptr;

 private:
  std::vector<RankResult> results(int ranks, const Settings& settings, const std::function<void(int rank)>& work);
  void connect(const ncclUniqueId& id, int rank, int ranks);
};

}  // namespace lockstep::simulated
