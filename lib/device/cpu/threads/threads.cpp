#include "device/cpu/threads/threads.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/log.hpp"
#include "base/text/counted.hpp"

namespace lockstep::cpu {
namespace {

// Cores as a bit set of any size. Empty if the system does not report them.
std::vector<unsigned long> cores_of(pid_t process) {
  constexpr std::size_t bits_per_word = 8 * sizeof(unsigned long);
  for (std::size_t cores = 1024; cores <= 1U << 18; cores *= 2) {  // the call fails until the set is large enough
    std::vector<unsigned long> words(cores / bits_per_word);
    if (sched_getaffinity(process, words.size() * sizeof(unsigned long), reinterpret_cast<cpu_set_t*>(words.data())) ==
        0) {
      return words;
    }
  }
  return {};
}

int count_of(const std::vector<unsigned long>& cores) {
  int count = 0;
  for (const unsigned long word : cores) count += __builtin_popcountl(word);
  return count;
}

std::vector<pid_t> children_of(pid_t process) {
  std::vector<pid_t> children;
  std::error_code error;
  const std::filesystem::path tasks = fmt::format("/proc/{}/task", process);
  for (const auto& task : std::filesystem::directory_iterator(tasks, error)) {
    // careful-open: below /proc
    std::ifstream list(task.path() / "children");
    for (pid_t child = 0; list >> child;) children.push_back(child);
  }
  return children;
}

}  // namespace

CoreUse observe_cores(int node_ranks) {
  const std::vector<unsigned long> own = cores_of(0);
  const int allowed = std::max(1, count_of(own));
  // Not all cores that are online: a container or a job may have fewer.
  const int launcher_cores = count_of(cores_of(getppid()));
  CoreUse use{std::max(allowed, launcher_cores), allowed, node_ranks, node_ranks};
  if (node_ranks == 1) return use;
  const std::vector<pid_t> siblings = children_of(getppid());
  if (static_cast<int>(siblings.size()) < node_ranks) return use;
  const auto sharing = std::ranges::count_if(siblings, [&](pid_t sibling) { return cores_of(sibling) == own; });
  use.sharing_ranks = std::clamp(static_cast<int>(sharing), 1, node_ranks);
  return use;
}

int share_of_cores(const CoreUse& use) { return std::max(1, use.allowed_cores / use.sharing_ranks); }

std::vector<std::string> thread_warnings(const CoreUse& use, int threads) {
  std::vector<std::string> warnings;
  if (use.allowed_cores == 1 && use.node_cores > use.node_ranks) {
    warnings.push_back(
        fmt::format("this rank is bound to one of {} cores, as mpirun does by default for one or two ranks. The other "
                    "cores stay idle. Use mpirun --bind-to none, or srun --cpus-per-task.",
                    use.node_cores));
  }
  if (use.sharing_ranks * threads > use.allowed_cores) {
    const int share = share_of_cores(use);
    warnings.push_back(fmt::format("{} x {} on {}: more threads than cores are slow. {}.",
                                   counted(use.sharing_ranks, "rank"), counted(threads, "thread"),
                                   counted(use.allowed_cores, "core"),
                                   threads > share ? fmt::format("Set --threads {}", share) : "Start fewer ranks"));
  }
  return warnings;
}

int choose_threads(int requested, int local_rank, int local_size) {
  const CoreUse use = observe_cores(local_size);
  const int threads = requested > 0 ? requested : share_of_cores(use);
  if (local_rank == 0) {
    for (const std::string& warning : thread_warnings(use, threads)) log::warning(std::string_view(warning));
  }
  return threads;
}

}  // namespace lockstep::cpu
