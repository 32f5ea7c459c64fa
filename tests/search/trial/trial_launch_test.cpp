#include "search/trial/trial_launch.hpp"

#include <gmock/gmock.h>

#include "support/messages.hpp"

namespace lockstep::trial_launch_test {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

RunProgram srun_with(const std::string& types) {
  return [types](const std::vector<std::string>&) { return ProgramOutput{0, {types}}; };
}

std::size_t no_gpus() { return 0; }

JobEnvironment job_of(const std::string& nodes, const std::string& tasks, std::int64_t count) {
  JobEnvironment job;
  job.slurm.emplace();
  job.slurm->components = {{nodes, tasks}};
  job.slurm->nodes = count;
  return job;
}

Space space_of(std::int64_t ranks, std::int64_t trials) {
  Space space;
  space.file = "space.yaml";
  space.lines.ranks = 4;
  space.ranks_per_trial = ranks;
  space.searcher.max_trials = trials;
  return space;
}

TEST(TrialLaunchTest, one_rank_needs_no_launcher_and_a_single_trial_gets_all_cores) {
  const TrialPlaces single = trial_places(space_of(1, 1), TrialLauncher::automatic, {}, srun_with(""), no_gpus);
  EXPECT_TRUE(single.launch.empty());
  EXPECT_EQ(single.at_once, 1);
  const TrialPlaces many = trial_places(space_of(1, 1000), TrialLauncher::automatic, {}, srun_with(""), no_gpus);
  EXPECT_EQ(many.at_once, std::min(single.threads, 16));
  EXPECT_EQ(many.threads, std::max(1, single.threads / 16));
}

// The message has the number of this machine's cores.
TEST(TrialLaunchTest, refuses_more_ranks_than_cores) {
  try {
    trial_places(space_of(100000, 1), TrialLauncher::automatic, {}, srun_with(""), no_gpus);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.failure(), Failure::usage);
    EXPECT_THAT(error.what(), HasSubstr("line 4: a trial has 100000 ranks"));
  }
}

TEST(TrialLaunchTest, with_oversubscription_a_trial_with_more_ranks_than_cores_runs_alone) {
  const TrialPlaces places =
      trial_places(space_of(100000, 5), TrialLauncher::automatic, {}, srun_with(""), no_gpus, Oversubscribe::yes);
  EXPECT_EQ(places.at_once, 1);
  EXPECT_EQ(places.threads, 1);
  EXPECT_THAT(places.launch, Contains("100000"));
}

TEST(TrialLaunchTest, a_slurm_job_shares_its_tasks) {
  const JobEnvironment job = job_of("n[1-3]", "4(x2),1", 3);
  const TrialPlaces places =
      trial_places(space_of(2, 100), TrialLauncher::automatic, job, srun_with("  pmix_v4"), no_gpus);
  EXPECT_EQ(places.at_once, 4);
  EXPECT_EQ(places.threads, 0);
  EXPECT_THAT(places.launch, ElementsAre("srun", "--mpi=pmix", "--exact", "--mem=0", "--kill-on-bad-exit=1",
                                         "--nodes=1", "--ntasks=2"));
  EXPECT_EQ(trial_places(space_of(3, 100), TrialLauncher::automatic, job, srun_with("  pmix_v4"), no_gpus).at_once, 2);
  const TrialPlaces large =
      trial_places(space_of(5, 100), TrialLauncher::automatic, job, srun_with("  pmix_v4"), no_gpus);
  EXPECT_EQ(large.at_once, 1);
  EXPECT_THAT(large.launch, Contains("--nodes=2"));
  expect_error(Failure::usage, {"line 4", "10 ranks", "9 tasks"}, [&] {
    trial_places(space_of(10, 100), TrialLauncher::automatic, job, srun_with("  pmix_v4"), no_gpus);
  });
}

TEST(TrialLaunchTest, without_pmix_mpirun_starts_several_ranks_on_one_node) {
  const TrialPlaces alone = trial_places(space_of(1, 100), TrialLauncher::automatic, job_of("n[1-2]", "4(x2)", 2),
                                         srun_with("none"), no_gpus);
  EXPECT_THAT(alone.launch, Not(Contains("--mpi=pmix")));
  EXPECT_EQ(alone.at_once, 8);
  expect_error(Failure::usage, {"2 nodes", "mpirun"}, [] {
    trial_places(space_of(2, 100), TrialLauncher::automatic, job_of("n[1-2]", "4(x2)", 2), srun_with("none"), no_gpus);
  });
}

TEST(TrialLaunchTest, steps_request_gpus_of_their_own) {
  JobEnvironment job = job_of("n[1-2]", "4(x2)", 2);
  const auto places = [&](const Space& space) {
    return trial_places(space, TrialLauncher::automatic, job, srun_with("pmix"), no_gpus);
  };
  job.granted_gpus = "CUDA_VISIBLE_DEVICES=0,1";
  EXPECT_EQ(places(space_of(1, 100)).at_once, 4);  // two GPUs a node
  EXPECT_THAT(places(space_of(1, 100)).launch, Contains("--gpus=1"));
  EXPECT_TRUE(places(space_of(1, 100)).gpus.empty());
  EXPECT_EQ(places(space_of(3, 100)).at_once, 2);  // three ranks share both GPUs of a node
  EXPECT_THAT(places(space_of(3, 100)).launch, Contains("--gpus=2"));
  EXPECT_THAT(places(space_of(8, 100)).launch, Contains("--gpus-per-node=2"));
  job.granted_gpus = "SLURM_GPUS_ON_NODE=4";
  EXPECT_EQ(places(space_of(2, 100)).at_once, 4);
  for (const std::vector<std::string>& words : {std::vector<std::string>{"--device=cpu"}, {"--device", "cpu"}}) {
    Space space = space_of(1, 100);
    space.arguments = words;
    EXPECT_EQ(places(space).at_once, 8);
    EXPECT_THAT(places(space).launch, Contains("--gres=none"));
  }
}

TEST(TrialLaunchTest, without_slurm_each_trial_sees_gpus_of_its_own) {
  JobEnvironment job;
  std::size_t count = 2;
  const auto gpus = [&](const Space& space) {
    return trial_places(space, TrialLauncher::automatic, job, srun_with(""), [&] { return count; }).gpus;
  };
  EXPECT_THAT(gpus(space_of(1, 1)), ElementsAre("0"));
  EXPECT_THAT(gpus(space_of(2, 100)), ElementsAre("0,1"));
  job.visible_gpus = "GPU-a,3,7";
  EXPECT_THAT(gpus(space_of(2, 100)), ElementsAre("GPU-a,3"));  // CUDA sees only two of them
  Space on_cpu = space_of(1, 100);
  on_cpu.arguments = {"--device", "cpu"};
  EXPECT_TRUE(gpus(on_cpu).empty());
  count = 0;
  EXPECT_TRUE(gpus(space_of(1, 1)).empty());
}

TEST(TrialLaunchTest, more_gpus_than_cores_leave_some_unused_and_fewer_limit_the_trials) {
  const TrialPlaces all = trial_places(space_of(1, 100), TrialLauncher::automatic, {}, srun_with(""), no_gpus);
  const TrialPlaces few = trial_places(space_of(1, 100), TrialLauncher::automatic, {}, srun_with(""), [] { return 1; });
  EXPECT_EQ(few.at_once, 1);
  EXPECT_EQ(few.threads, all.threads * all.at_once);
  const auto hundred = [] { return std::size_t{100}; };
  EXPECT_EQ(std::ssize(trial_places(space_of(1, 100), TrialLauncher::automatic, {}, srun_with(""), hundred).gpus),
            all.at_once);
}

TrialPlaces places_of(const RankPlaces& ranks, const Space& space, std::size_t gpus = 0) {
  return trial_places(
      space, TrialLauncher::automatic, {}, srun_with(""), [=] { return gpus; }, Oversubscribe::no, &ranks);
}

TEST(TrialLaunchTest, mpirun_gives_trials_the_places_of_its_ranks) {
  const TrialPlaces alone = places_of({{{"", 8}}}, space_of(1, 100));
  EXPECT_EQ(alone.at_once, 8);
  EXPECT_GE(alone.threads, 1);
  EXPECT_THAT(alone.launches, testing::Each(testing::IsEmpty()));
  const TrialPlaces pairs = places_of({{{"", 7}}}, space_of(2, 100));
  EXPECT_EQ(pairs.at_once, 3);
  EXPECT_THAT(pairs.launches, testing::Each(ElementsAre("mpirun", "--oversubscribe", "--bind-to", "none", "-n", "2")));
  EXPECT_EQ(places_of({{{"", 8}}}, space_of(1, 3)).at_once, 3);
}

TEST(TrialLaunchTest, mpirun_gives_trials_all_nodes_in_turn) {
  const TrialPlaces places = places_of({{{"", 2}, {"n2", 5}, {"n3", 1}}}, space_of(2, 100));
  ASSERT_EQ(places.at_once, 3);
  ASSERT_EQ(places.launches.size(), 3);
  EXPECT_THAT(places.launches[0], Not(Contains("--host")));
  EXPECT_THAT(places.launches[1], testing::IsSupersetOf({"--host", "n2:2", "-x", "LOCKSTEP_VERDICT"}));
  EXPECT_EQ(places.launches[1], places.launches[2]);
  const TrialPlaces few = places_of({{{"", 4}, {"n2", 4}}}, space_of(1, 2));
  EXPECT_THAT(few.launches[0], testing::IsEmpty());
  EXPECT_THAT(few.launches[1], Contains("n2:1"));
}

TEST(TrialLaunchTest, under_mpirun_each_node_has_gpus_of_its_own) {
  const TrialPlaces places = places_of({{{"", 4}, {"n2", 4}}}, space_of(1, 100), 2);
  EXPECT_EQ(places.at_once, 4);
  EXPECT_THAT(places.gpus, ElementsAre("0", "0", "1", "1"));
  EXPECT_THAT(places.launches[1], Contains("CUDA_VISIBLE_DEVICES"));
}

TEST(TrialLaunchTest, under_mpirun_a_trial_has_one_node) {
  expect_error(Failure::usage, {"line 4", "5 ranks", "4 ranks"}, [] {
    places_of({{{"", 4}, {"n2", 4}}}, space_of(5, 1));
  });
}

TEST(TrialLaunchTest, srun_needs_a_job) {
  expect_error(Failure::usage, {"--launcher srun"},
               [] { trial_places(space_of(1, 1), TrialLauncher::srun, {}, srun_with(""), no_gpus); });
}

}  // namespace lockstep::trial_launch_test
