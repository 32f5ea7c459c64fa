// step_bench --first-step: two starts, the second with the kernel choices of the first.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/program.hpp"

namespace lockstep::first_step_test {

std::vector<std::string> first_step(const std::vector<std::string>& more = {}) {
  std::vector<std::string> words = {built_program("step_bench"), "--model", "lenet", "--batch", "4"};
  words.insert(words.end(), {"--device", "cpu", "--threads", "1", "--steps", "1000000", "--first-step"});
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

TEST(FirstStepTest, is_timed_without_and_with_choices_of_an_earlier_run) {
  const ProgramResult result = run_program(first_step({"--verbose"}));
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  const nlohmann::json line = nlohmann::json::parse(result.output);
  EXPECT_GT(line["first_step_seconds_cold"], 0);
  EXPECT_GT(line["first_step_seconds_warm"], 0);
  EXPECT_EQ(line["kernels_measured_cold"], 0);  // a CPU's are chosen by a rule
  EXPECT_EQ(line["kernels_measured_warm"], 0);
  EXPECT_EQ(line["model"], "lenet");
}

TEST(FirstStepTest, is_refused_under_a_launcher) {
  const ProgramResult result = run_program(first_step(), {{"OMPI_COMM_WORLD_SIZE", "2"}});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.errors.find("mpirun"), std::string::npos) << result.errors;
}

TEST(FirstStepTest, ends_where_the_program_fails) {
  const ProgramResult result = run_program(first_step({"--model", "abacus"}));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.errors.find("--first-step"), std::string::npos) << result.errors;
}

TEST(FirstStepTest, is_refused_with_options_that_print_something_else) {
  const ProgramResult result = run_program(first_step({"--help"}));
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.errors.find("--first-step"), std::string::npos) << result.errors;
}

}  // namespace lockstep::first_step_test
