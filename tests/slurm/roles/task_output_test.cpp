#include "slurm/roles/task_output.hpp"

#include <gtest/gtest.h>

#include "support/mutation.hpp"

namespace lockstep::task_output_test {

using Lines = std::vector<std::string>;

TEST(TaskOutputTest, each_task_of_a_step_has_lines_of_its_own) {
  TaskOutput output(12, 2);
  EXPECT_EQ(output.take(" 0: a"), "a");
  EXPECT_EQ(output.take("11:   b: 5"), "  b: 5");
  EXPECT_EQ(output.take("11: "), "");
  EXPECT_EQ(output.take("11: 0: c"), "0: c");
  for (const char* line : {"srun: error: n1: task 0: Killed", "12: x", "-1: x", "x", "", "   ", ": x", "1:x"}) {
    EXPECT_EQ(output.take(line), line) << "of srun itself";
  }
  EXPECT_EQ(output.last_of(0), Lines{"a"});
  EXPECT_EQ(output.last_of(11), (Lines{"", "0: c"}));
  EXPECT_EQ(output.last_of(1), Lines{});
}

TEST(TaskOutputTest, lines_of_a_single_task_have_no_mark) {
  TaskOutput output(1, 3);
  EXPECT_EQ(output.take("0: a"), "0: a");
  output.take(std::string(1000, 'x'));
  EXPECT_EQ(output.last_of(0), (Lines{"0: a", std::string(500, 'x')}));
}

TEST(TaskOutputTest, any_line_is_taken) {
  TaskOutput output(3, 5);
  for (std::uint64_t round = 0; round < mutation_rounds(300); ++round) output.take(mutated(" 2: some text: 3", round));
}

}  // namespace lockstep::task_output_test
