// Where trials run: how many at once, and the words that start their ranks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/text/choice.hpp"
#include "job/job_environment.hpp"
#include "search/space/space.hpp"
#include "search/trial/rank_places.hpp"
#include "search/trial/trial_command.hpp"

namespace lockstep {

// automatic: srun in a Slurm job, if it has PMIx, else mpirun.
enum class TrialLauncher : std::uint8_t { automatic, mpirun, srun };
inline constexpr std::array<Choice<TrialLauncher>, 3> trial_launchers{
    {{"auto", TrialLauncher::automatic}, {"mpirun", TrialLauncher::mpirun}, {"srun", TrialLauncher::srun}}};

// Whether mpirun may start more ranks than this node has cores.
enum class Oversubscribe : std::uint8_t { no, yes };

struct TrialPlaces {
  std::vector<std::string> launch;                 // in front of the program; empty: one rank, started directly
  std::vector<std::vector<std::string>> launches;  // the same of each of the trials at once; empty: all by `launch`
  std::int64_t at_once = 1;                        // trials
  int threads = 0;                                 // of each rank; 0: Slurm's tasks have their own cores
  std::vector<std::string> gpus;  // CUDA_VISIBLE_DEVICES of each of the trials at once; empty: srun or nobody sets it
};

// GPUs are divided among trials, one for each rank. If a node has fewer GPUs than a trial has ranks there, the trial's
// ranks share all of them. Trials with `--device cpu` get none. In a Slurm job, all nodes count as having the GPUs of
// this one. With Oversubscribe::yes, a trial may have more ranks than there are cores, and then runs alone.
//
// With `ranks`, mpirun has started the search: trials run in the places of its ranks, each on one node.
//
// `run` asks srun for its MPI types. `count_gpus` returns the number of GPUs that this process may use; only trials
// that srun does not start need it. Throws Error(usage) if a trial has more ranks than there are cores or tasks, or
// ranks of mpirun on a node, if srun is asked for outside a Slurm job, or mpirun in a job of several nodes.
TrialPlaces trial_places(const Space& space, TrialLauncher launcher, const JobEnvironment& job, const RunProgram& run,
                         const std::function<std::size_t()>& count_gpus,
                         Oversubscribe oversubscribe = Oversubscribe::no, const RankPlaces* ranks = nullptr);

}  // namespace lockstep
