#include "search/trial_launch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>

#include "base/error.hpp"
#include "base/text/counted.hpp"
#include "device/cpu/threads/threads.hpp"
#include "search/space_reader.hpp"
#include "slurm/roles/placement.hpp"

namespace lockstep {
namespace {

bool has_pmix(const RunProgram& run) {
  const ProgramOutput output = run({"srun", "--mpi=list"});
  return std::ranges::any_of(output.lines,
                             [](const std::string& line) { return line.find("pmix") != std::string::npos; });
}

// The number of tasks on each node, the largest first.
std::vector<std::int64_t> tasks_of(const SlurmJob& job) {
  std::map<std::string, std::int64_t> by_node;
  for (const SlurmJob::Component& part : job.components) {
    for (const std::string& node : task_nodes(part.node_list, part.tasks_per_node)) ++by_node[node];
  }
  std::vector<std::int64_t> tasks;
  for (const auto& [node, count] : by_node) tasks.push_back(count);
  std::ranges::sort(tasks, std::greater());
  return tasks;
}

void require_room(std::int64_t available, const char* what, const Space& space) {
  const std::int64_t ranks = space.ranks_per_trial;
  if (ranks <= available) return;
  SpaceReader(space.file)
      .refuse(space.lines.ranks,
              fmt::format("a trial has {}, but there are only {}. Lower 'ranks_per_trial', or request more",
                          counted(ranks, "rank"), counted(available, what)));
}

std::int64_t limited(std::int64_t trials, const Space& space) {
  return std::min({trials, space.searcher.max_concurrent_trials, space.searcher.max_trials});
}

// A trial gets as few nodes as possible: srun would spread it, and leave no node for another trial of its size.
TrialPlaces places_by_srun(const Space& space, const SlurmJob& job, bool with_pmix) {
  const std::vector<std::int64_t> tasks = tasks_of(job);
  const std::int64_t ranks = space.ranks_per_trial;
  require_room(std::accumulate(tasks.begin(), tasks.end(), std::int64_t{0}), "task", space);
  std::int64_t nodes = 0;
  for (std::int64_t room = 0; room < ranks; ++nodes) room += tasks[static_cast<std::size_t>(nodes)];
  std::int64_t trials = std::ssize(tasks) / nodes;
  if (nodes == 1) {
    trials = 0;
    for (const std::int64_t count : tasks) trials += count / ranks;
  }
  TrialPlaces places;
  places.at_once = limited(trials, space);
  places.launch = {"srun",
                   "--exact",
                   "--mem=0",
                   "--kill-on-bad-exit=1",
                   fmt::format("--nodes={}", nodes),
                   fmt::format("--ntasks={}", ranks)};
  if (with_pmix) places.launch.insert(places.launch.begin() + 1, "--mpi=pmix");
  return places;
}

TrialPlaces places_by_mpirun(const Space& space) {
  TrialPlaces places;
  const std::int64_t cores = cpu::observe_cores(1).allowed_cores;
  require_room(cores, "core", space);
  places.at_once = limited(cores / space.ranks_per_trial, space);
  places.threads = static_cast<int>(std::max<std::int64_t>(cores / (places.at_once * space.ranks_per_trial), 1));
  if (space.ranks_per_trial > 1) {
    places.launch = {"mpirun", "--oversubscribe", "--bind-to", "none", "-n", std::to_string(space.ranks_per_trial)};
  }
  return places;
}

}  // namespace

TrialPlaces trial_places(const Space& space, TrialLauncher launcher, const JobEnvironment& job, const RunProgram& run) {
  require(
      launcher != TrialLauncher::srun || job.slurm, Failure::usage,
      "--launcher srun needs a Slurm job. Call search in a batch script or after salloc, or use --launcher mpirun.");
  if (job.slurm && launcher != TrialLauncher::mpirun) {
    const bool with_pmix = has_pmix(run);
    if (with_pmix || launcher == TrialLauncher::srun || space.ranks_per_trial == 1) {
      return places_by_srun(space, *job.slurm, with_pmix);
    }
  }
  require(!job.slurm || job.slurm->nodes.value_or(1) == 1, Failure::usage,
          "search starts trials with mpirun on this node only, but this job has {} nodes. Use srun with PMIx, or one "
          "node.",
          job.slurm ? job.slurm->nodes.value_or(1) : 1);
  return places_by_mpirun(space);
}

}  // namespace lockstep
