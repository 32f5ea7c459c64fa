#include "search/trial/trial_launch.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <numeric>
#include <span>
#include <sstream>
#include <string_view>

#include "base/error.hpp"
#include "base/text/counted.hpp"
#include "base/text/number.hpp"
#include "device/cpu/threads/threads.hpp"
#include "search/space/space_reader.hpp"
#include "slurm/roles/placement.hpp"

namespace lockstep {
namespace {

using namespace std::string_literals;

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

void require_room(std::int64_t available, const char* what, const char* advice, const Space& space) {
  const std::int64_t ranks = space.ranks_per_trial;
  if (ranks <= available) return;
  SpaceReader(space.file)
      .refuse(space.lines.ranks, fmt::format("a trial has {}. Available: {}. Lower 'ranks_per_trial', {}",
                                             counted(ranks, "rank"), counted(available, what), advice));
}

std::int64_t limited(std::int64_t trials, const Space& space) {
  return std::min({trials, space.searcher.max_concurrent_trials, space.searcher.max_trials});
}

bool computes_on_cpu(const Space& space) {
  const std::vector<std::string>& words = space.arguments;
  const auto option = std::ranges::find(words, "--device");
  return std::ranges::find(words, "--device=cpu") != words.end() ||
         (option != words.end() && std::next(option) != words.end() && *std::next(option) == "cpu");
}

std::vector<std::string> list_of(const std::string& text) {
  std::vector<std::string> names;
  std::istringstream input(text);
  for (std::string name; std::getline(input, name, ',');) names.push_back(name);
  return names;
}

// The GPUs that Slurm has granted the job on this node: NAME=0,1, or SLURM_GPUS_ON_NODE=2.
std::int64_t granted_gpus(const JobEnvironment& job) {
  constexpr std::string_view number_of_gpus = "SLURM_GPUS_ON_NODE=";
  if (job.granted_gpus.empty()) return 0;
  if (!job.granted_gpus.starts_with(number_of_gpus)) return std::ssize(list_of(job.granted_gpus));
  constexpr std::int64_t most = 1024;
  return parse_number<std::int64_t>(job.granted_gpus.substr(number_of_gpus.size()), {0, most}).value_or(0);
}

// How many trials of `ranks` ranks on one node its GPUs are enough for.
std::int64_t trials_on(std::int64_t gpus, std::int64_t ranks) { return gpus / std::min(gpus, ranks); }

// A trial gets as few nodes as possible: srun would spread it, and leave no node for another trial of its size.
TrialPlaces places_by_srun(const Space& space, const JobEnvironment& job, bool with_pmix) {
  const std::vector<std::int64_t> tasks = tasks_of(*job.slurm);
  const std::int64_t granted = granted_gpus(job);
  const std::int64_t gpus = computes_on_cpu(space) ? 0 : granted;
  const std::int64_t ranks = space.ranks_per_trial;
  require_room(std::accumulate(tasks.begin(), tasks.end(), std::int64_t{0}), "task", "or request more", space);
  std::int64_t nodes = 0;
  for (std::int64_t room = 0; room < ranks; ++nodes) room += tasks[static_cast<std::size_t>(nodes)];
  std::int64_t trials = std::ssize(tasks) / nodes;
  if (nodes == 1) {
    trials = 0;
    for (const std::int64_t count : tasks) {
      trials += gpus > 0 ? std::min(count / ranks, trials_on(gpus, ranks)) : count / ranks;
    }
  }
  TrialPlaces places;
  places.at_once = limited(trials, space);
  places.launch = {"srun",
                   "--exact",
                   "--mem=0",
                   "--kill-on-bad-exit=1",
                   fmt::format("--nodes={}", nodes),
                   fmt::format("--ntasks={}", ranks)};
  // A step that requests no GPUs gets all of the job's.
  if (gpus > 0 && nodes == 1) places.launch.push_back(fmt::format("--gpus={}", std::min(gpus, ranks)));
  if (gpus > 0 && nodes > 1) places.launch.push_back(fmt::format("--gpus-per-node={}", gpus));
  if (gpus == 0 && granted > 0) places.launch.emplace_back("--gres=none");
  if (with_pmix) places.launch.insert(places.launch.begin() + 1, "--mpi=pmix");
  return places;
}

// What each of the trials at once sees of this node's GPUs, as CUDA_VISIBLE_DEVICES.
std::vector<std::string> divided_gpus(const std::vector<std::string>& names, std::int64_t trials, std::int64_t ranks) {
  const std::size_t share = static_cast<std::size_t>(std::min(std::ssize(names), ranks));
  std::vector<std::string> sets;
  for (std::size_t first = 0; std::ssize(sets) < trials; first += share) {
    sets.push_back(fmt::format("{}", fmt::join(std::span(names).subspan(first, share), ",")));
  }
  return sets;
}

// In CUDA's order.
std::vector<std::string> gpu_names(const std::string& visible, std::size_t count) {
  std::vector<std::string> names = list_of(visible);
  if (visible.empty()) {
    for (std::size_t index = 0; index < count; ++index) names.push_back(std::to_string(index));
  }
  names.resize(std::min(names.size(), count));
  return names;
}

std::vector<std::string> mpirun_words(std::int64_t ranks) {
  return {"mpirun", "--oversubscribe", "--bind-to", "none", "-n", std::to_string(ranks)};
}

TrialPlaces places_by_mpirun(const Space& space, const std::vector<std::string>& gpus, Oversubscribe oversubscribe) {
  TrialPlaces places;
  const std::int64_t cores = cpu::observe_cores(1).allowed_cores;
  if (oversubscribe == Oversubscribe::no) require_room(cores, "core", "request more, or use --oversubscribe", space);
  places.at_once = limited(std::max<std::int64_t>(cores / space.ranks_per_trial, 1), space);
  if (!gpus.empty()) {
    places.at_once = std::min(places.at_once, trials_on(std::ssize(gpus), space.ranks_per_trial));
    places.gpus = divided_gpus(gpus, places.at_once, space.ranks_per_trial);
  }
  places.threads = static_cast<int>(std::max<std::int64_t>(cores / (places.at_once * space.ranks_per_trial), 1));
  if (space.ranks_per_trial > 1) places.launch = mpirun_words(space.ranks_per_trial);
  return places;
}

// One trial on each node in turn, so that few trials leave no node idle. All nodes count as having the GPUs of this
// one.
TrialPlaces places_by_ranks(const Space& space, const RankPlaces& ranks, const std::vector<std::string>& gpus) {
  const std::int64_t of_trial = space.ranks_per_trial;
  const auto largest = std::ranges::max_element(ranks.nodes, {}, &RankPlaces::Node::ranks);
  require_room(largest->ranks, "rank", "or let mpirun start more on each node", space);
  const auto room = [&](const RankPlaces::Node& node) {
    const std::int64_t trials = node.ranks / of_trial;
    return gpus.empty() ? trials : std::min(trials, trials_on(std::ssize(gpus), of_trial));
  };
  TrialPlaces places;
  places.at_once = 0;
  for (const RankPlaces::Node& node : ranks.nodes) places.at_once += room(node);
  places.at_once = limited(places.at_once, space);
  if (of_trial > 1) places.launch = mpirun_words(of_trial);
  const auto sets = gpus.empty() ? std::vector<std::string>() : divided_gpus(gpus, room(*largest), of_trial);
  for (std::int64_t index = 0; std::ssize(places.launches) < places.at_once; ++index) {
    for (const RankPlaces::Node& node : ranks.nodes) {
      if (index >= room(node) || std::ssize(places.launches) == places.at_once) continue;
      places.launches.push_back(places.launch);
      if (!node.name.empty()) {
        std::vector<std::string>& words = places.launches.back() = mpirun_words(of_trial);
        std::ranges::copy(
            std::array{"--host"s, fmt::format("{}:{}", node.name, of_trial), "-x"s, std::string(exit_report_variable)},
            std::back_inserter(words));
        if (!gpus.empty()) words.insert(words.end(), {"-x", "CUDA_VISIBLE_DEVICES"});
      }
      if (!gpus.empty()) places.gpus.push_back(sets[static_cast<std::size_t>(index)]);
    }
  }
  const std::int64_t cores = cpu::observe_cores(1).allowed_cores;
  places.threads = static_cast<int>(std::max<std::int64_t>(cores / ranks.nodes.front().ranks, 1));
  return places;
}

}  // namespace

TrialPlaces trial_places(const Space& space, TrialLauncher launcher, const JobEnvironment& job, const RunProgram& run,
                         const std::function<std::size_t()>& count_gpus, Oversubscribe oversubscribe,
                         const RankPlaces* ranks) {
  require(
      launcher != TrialLauncher::srun || job.slurm, Failure::usage,
      "--launcher srun needs a Slurm job. Call search in a batch script or after salloc, or use --launcher mpirun.");
  const auto gpus = [&] {
    return computes_on_cpu(space) ? std::vector<std::string>() : gpu_names(job.visible_gpus, count_gpus());
  };
  if (ranks != nullptr) return places_by_ranks(space, *ranks, gpus());
  if (job.slurm && launcher != TrialLauncher::mpirun) {
    const bool with_pmix = has_pmix(run);
    if (with_pmix || launcher == TrialLauncher::srun || space.ranks_per_trial == 1) {
      return places_by_srun(space, job, with_pmix);
    }
  }
  require(!job.slurm || job.slurm->nodes.value_or(1) == 1, Failure::usage,
          "search starts trials with mpirun on this node only, but this job has {} nodes. Use srun with PMIx, or one "
          "node.",
          job.slurm ? job.slurm->nodes.value_or(1) : 1);
  return places_by_mpirun(space, gpus(), oversubscribe);
}

}  // namespace lockstep
