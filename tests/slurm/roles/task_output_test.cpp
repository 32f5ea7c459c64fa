#include "slurm/roles/task_output.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/mutation.hpp"

namespace lockstep::task_output_test {

using Lines = std::vector<std::string>;

// "task: TEXT" or "srun: TEXT" of each line.
Lines words(const std::vector<OutputLine>& lines) {
  Lines words;
  for (const OutputLine& line : lines) words.push_back((line.is_marked ? "task: " : "srun: ") + line.text);
  return words;
}

TEST(TaskOutputTest, each_task_of_a_step_has_lines_of_its_own) {
  TaskOutput output(12, 2);
  EXPECT_EQ(words(output.take(" 0: a")), Lines{"task: a"});
  EXPECT_EQ(words(output.take("11:   b: 5")), Lines{"task:   b: 5"});
  EXPECT_EQ(words(output.take("11: ")), Lines{"task: "});
  EXPECT_EQ(words(output.take("11: 0: c")), Lines{"task: 0: c"});
  EXPECT_EQ(words(output.take("07: d")), Lines{"task: d"});
  for (const char* line : {"srun: error: n1: task 0: Killed", "12: x", "-1: x", "x", "", "   ", ": x", "1:x"}) {
    EXPECT_EQ(words(output.take(line)), Lines{std::string("srun: ") + line});
  }
  EXPECT_EQ(output.last_of(0), Lines{"a"});
  EXPECT_EQ(output.last_of(7), Lines{"d"});
  EXPECT_EQ(output.last_of(11), (Lines{"", "0: c"}));
  EXPECT_EQ(output.last_of(1), Lines{});
}

TEST(TaskOutputTest, messages_of_srun_between_a_mark_and_its_line_are_put_before_the_line) {
  TaskOutput output(2, 5);
  EXPECT_EQ(words(output.take("1: srun: error: n2: task 1: Exited with exit code 1")), Lines{});
  EXPECT_EQ(words(output.take("srun: launch/slurm: _step_signal: Terminating StepId=17.1")), Lines{});
  EXPECT_EQ(words(output.take("cp: x: No space left on device")),
            (Lines{"srun: srun: error: n2: task 1: Exited with exit code 1",
                   "srun: srun: launch/slurm: _step_signal: Terminating StepId=17.1",
                   "task: cp: x: No space left on device"}));
  EXPECT_EQ(output.last_of(1), Lines{"cp: x: No space left on device"});
}

TEST(TaskOutputTest, a_task_may_print_what_srun_prints) {
  TaskOutput output(2, 5);
  EXPECT_EQ(words(output.take("1: srun: error: n2: task 5: Killed")), Lines{});
  EXPECT_EQ(words(output.take("1: srun: error: n2: task 6: Killed")), Lines{"task: srun: error: n2: task 5: Killed"});
  EXPECT_EQ(words(output.take("0: a")), (Lines{"task: srun: error: n2: task 6: Killed", "task: a"}));
  EXPECT_EQ(words(output.take("1: srun: error: n2: task 7: Killed")), Lines{});
  EXPECT_EQ(words(output.take("srun: error: n1: task 0: Killed")), Lines{});
  EXPECT_EQ(words(output.take_end()),
            (Lines{"task: srun: error: n2: task 7: Killed", "srun: srun: error: n1: task 0: Killed"}));
  EXPECT_EQ(words(output.take_end()), Lines{});
  EXPECT_THAT(output.last_of(1), testing::SizeIs(3));
}

TEST(TaskOutputTest, lines_of_a_single_task_have_no_mark) {
  TaskOutput output(1, 3);
  EXPECT_EQ(words(output.take("0: a")), Lines{"srun: 0: a"});
  output.take(std::string(1000, 'x'));
  EXPECT_EQ(output.last_of(0), (Lines{"0: a", std::string(500, 'x')}));
}

TEST(TaskOutputTest, every_line_is_returned_once) {
  for (const char* seed : {" 2: some text: 3", "1: srun: error: n2: task 1: Killed"}) {
    TaskOutput output(3, 5);
    std::size_t returned = 0;
    const std::uint64_t rounds = mutation_rounds(300);
    for (std::uint64_t round = 0; round < rounds; ++round) returned += output.take(mutated(seed, round)).size();
    EXPECT_EQ(returned + output.take_end().size(), rounds);
  }
}

}  // namespace lockstep::task_output_test
