#include "device/cuda/gpu_choice.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "base/error.hpp"

namespace lockstep::cuda {
namespace {

using Seen = std::vector<std::vector<std::string>>;

// Maps a GPU's UUID to the rank that uses it. Gives as many ranks as possible their own GPU (maximum bipartite
// matching by augmenting paths, Kuhn 1955).
std::map<std::string, std::size_t> assign(const Seen& seen) {
  std::map<std::string, std::size_t> driver;
  for (std::size_t rank = 0; rank < seen.size(); ++rank) {
    std::set<std::string> tried;
    const std::function<bool(std::size_t)> place = [&](std::size_t one) {
      for (const std::string& gpu : seen[one]) {
        if (!tried.insert(gpu).second) continue;
        const auto holder = driver.find(gpu);
        if (holder != driver.end() && !place(holder->second)) continue;
        driver[gpu] = one;
        return true;
      }
      return false;
    };
    // A free GPU first, so no rank has to move. If all ranks see the same GPUs, rank n gets GPU n.
    const auto free = std::ranges::find_if(seen[rank], [&](const std::string& gpu) { return !driver.contains(gpu); });
    if (free != seen[rank].end()) {
      driver[*free] = rank;
    } else {
      place(rank);
    }
  }
  return driver;
}

}  // namespace

GpuChoice choose_gpu(const Seen& seen, std::size_t local_rank) {
  require(local_rank < seen.size() && !seen[local_rank].empty(), Failure::usage,
          "no GPU is visible to this rank. Check that this node has one and that CUDA_VISIBLE_DEVICES names it.");
  const std::map<std::string, std::size_t> driver = assign(seen);
  const auto gpu_of = [&](std::size_t rank) -> std::string {
    for (const auto& [gpu, owner] : driver) {
      if (owner == rank) return gpu;
    }
    return seen[rank].empty() ? "" : seen[rank][rank % seen[rank].size()];
  };
  const std::string mine = gpu_of(local_rank);
  GpuChoice choice{0, 0};
  for (std::size_t rank = 0; rank < seen.size(); ++rank) choice.sharers += gpu_of(rank) == mine ? 1 : 0;
  choice.index = static_cast<std::size_t>(std::ranges::find(seen[local_rank], mine) - seen[local_rank].begin());
  return choice;
}

}  // namespace lockstep::cuda
