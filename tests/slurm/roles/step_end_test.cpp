#include "slurm/roles/step_end.hpp"

#include <gtest/gtest.h>

#include <csignal>

#include "support/mutation.hpp"

namespace lockstep::step_end_test {

constexpr const char* silent =
    "rank 1 on n2 was killed or ended without a word. The other ranks cannot continue without it.";

// A world of three instances at the places 1 to 3, each on a node of its own.
const RoleStep world{"training", {1, 2, 3}};
const std::vector<InstanceSlot> one_a_node = {{0, "n1"}, {0, "n1"}, {0, "n2"}, {0, "n3"}};

ExitReport verdict_of(int rank, const std::string& host, const std::string& sentence, int signal = 0) {
  ExitReport verdict;
  verdict.rank = rank;
  verdict.host = host;
  verdict.sentence = sentence;
  verdict.signal = signal;
  return verdict;
}

TEST(StepEndTest, what_srun_says_of_a_task_is_read) {
  const std::optional<TaskEnd> killed = parse_task_end("srun: error: n3: task 2: Killed");
  ASSERT_TRUE(killed);
  EXPECT_EQ(killed->hosts, std::vector<std::string>{"n3"});
  EXPECT_EQ(killed->task, 2);
  EXPECT_EQ(killed->signal, SIGKILL);
  const std::optional<TaskEnd> several = parse_task_end("srun: error: n[1-2]: tasks 0-1: Exited with exit code 2");
  ASSERT_TRUE(several);
  EXPECT_EQ(several->hosts, (std::vector<std::string>{"n1", "n2"}));
  EXPECT_EQ(several->signal, 0);
  EXPECT_EQ(several->code, 2);
  EXPECT_EQ(killed->code, 0);
  EXPECT_EQ(parse_task_end("srun: error: n1: task 0: Segmentation fault (core dumped)")->signal, SIGSEGV);
  for (const char* line : {"", "task 2: Killed", "srun: error: n3: task : Killed", "srun: error: n3: task 2",
                           "srun: error: n[: task 2: Killed", "srun: error: n3: task 99999999: Killed",
                           "srun: Job step aborted: Waiting up to 7 seconds for job step to finish."}) {
    EXPECT_FALSE(parse_task_end(line)) << line;
  }
  for (std::uint64_t round = 0; round < mutation_rounds(100); ++round) {
    parse_task_end(mutated("srun: error: n[1-2]: tasks 0-1: Exited with exit code 2", round));
  }
}

TEST(StepEndTest, what_srun_says_of_a_failed_node_is_read) {
  EXPECT_TRUE(is_node_failure("srun: error: Node failure on n2"));
  EXPECT_FALSE(is_node_failure("Node failure on n2"));
}

// Of a world of several instances the first one was named, whichever failed.
TEST(StepEndTest, the_rank_of_the_verdict_is_the_instance_that_failed_first) {
  const StepEnd end = step_end(world, one_a_node, 1, verdict_of(2, "n3", "out of its mind."), {});
  EXPECT_EQ(end.first, 3);
  EXPECT_EQ(end.host, "n3");
  EXPECT_EQ(places_by_end(world, end), (std::vector<std::size_t>{3, 1, 2}));
  EXPECT_FALSE(step_end(world, one_a_node, 1, verdict_of(7, "n3", "x"), {}).first) << "there is no such rank";
  EXPECT_EQ(places_by_end(world, {}), world.places);
}

TEST(StepEndTest, ranks_of_one_instance_end_as_one) {
  const RoleStep gpus{"training", {1, 1, 2, 2}};
  const StepEnd end = step_end(gpus, one_a_node, 1, verdict_of(3, "n2", "out of its mind."), {});
  EXPECT_EQ(end.first, 2);
  EXPECT_EQ(places_by_end(gpus, end), (std::vector<std::size_t>{2, 1}));
  const std::vector<InstanceSlot> components = {{0, "n1"}, {0, "n1"}, {1, "n2"}};
  EXPECT_EQ(step_end(gpus, components, 3, {}, parse_task_end("srun: error: n2: task 1: Killed")).first, 2);
}

TEST(StepEndTest, without_a_verdict_srun_says_which_ended_first) {
  const std::optional<TaskEnd> task = parse_task_end("srun: error: n2: task 1: Exited with exit code 3");
  EXPECT_EQ(step_end(world, one_a_node, 3, {}, task).first, 2);
  EXPECT_EQ(step_end(world, one_a_node, 137, {}, task).code, 3) << "srun has killed the others";
  const std::vector<InstanceSlot> one_node(4, {0, "n1"});
  EXPECT_EQ(step_end(world, one_node, 3, {}, parse_task_end("srun: error: n1: task 2: Killed")).first, 3);
  const std::vector<InstanceSlot> two_components = {{0, "n1"}, {0, "n1"}, {1, "n1"}, {1, "n1"}};
  EXPECT_FALSE(step_end(world, two_components, 3, {}, parse_task_end("srun: error: n1: task 0: Killed")).first)
      << "each component counts its own tasks";
  EXPECT_EQ(step_end(world, one_a_node, 3, {}, {}).code, 3);
}

// srun told of the rank that a broken pipe had ended before the one whose death had broken it.
TEST(StepEndTest, a_broken_pipe_is_anothers_death) {
  const auto pipe = parse_task_end("srun: error: n1: task 0: Broken pipe");
  const auto killed = parse_task_end("srun: error: n2: task 1: Killed");
  EXPECT_EQ(first_cause({}, *pipe).signal, SIGPIPE);
  EXPECT_EQ(first_cause(pipe, *killed).signal, SIGKILL);
  EXPECT_EQ(first_cause(killed, *pipe).signal, SIGKILL);
  const StepEnd end = step_end(world, one_a_node, 141, {}, first_cause(pipe, *killed));
  EXPECT_EQ(end.code, 137);
  EXPECT_EQ(end.first, 2);
  EXPECT_EQ(step_end(world, one_a_node, 141, {}, pipe).code, 141);
  EXPECT_EQ(step_end(world, one_a_node, 3, {}, killed).code, 3);
}

// It counted as `failed`: nobody was left on its node to say which signal it was.
TEST(StepEndTest, a_rank_that_was_killed_alone_on_its_node_was_killed) {
  const auto killed = parse_task_end("srun: error: n2: task 1: Killed");
  const StepEnd end = step_end(world, one_a_node, 137, verdict_of(1, "n2", silent), killed);
  EXPECT_EQ(end.signal, SIGKILL);
  EXPECT_EQ(end.code, 1);
  EXPECT_EQ(step_end(world, one_a_node, 137, verdict_of(1, "n2", "its own words."), killed).signal, 0)
      << "srun killed it after it had said why";
  EXPECT_EQ(step_end(world, one_a_node, 137, verdict_of(2, "n3", silent), killed).signal, 0) << "another one's node";
  EXPECT_EQ(step_end(world, one_a_node, 137, verdict_of(1, "n2", silent, SIGSEGV), killed).signal, SIGSEGV);
  EXPECT_EQ(step_end(world, one_a_node, 0, {}, killed).signal, 0);
}

}  // namespace lockstep::step_end_test
