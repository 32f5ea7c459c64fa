// Which tests of a program run if its arguments name a source.
#include "support/chosen_source.hpp"

#include <gmock/gmock.h>

#include "support/program.hpp"

namespace lockstep::chosen_source_test {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// Of a program that has this source and verdict_test.
ProgramResult list(const std::vector<std::string>& words) {
  std::vector<std::string> command = {built_program("support_tests").string(), "--gtest_list_tests"};
  command.insert(command.end(), words.begin(), words.end());
  return run_program(command);
}

TEST(ChosenSource, is_the_only_one_that_runs) {
  EXPECT_THAT(list({"chosen_source_test"}).output, AllOf(HasSubstr("ChosenSource."), Not(HasSubstr("ExitReport."))));
  EXPECT_THAT(list({}).output, AllOf(HasSubstr("ChosenSource."), HasSubstr("ExitReport.")));
}

TEST(ChosenSource, is_not_of_another_program) {
  const ProgramResult result = list({"chosen"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.errors, HasSubstr("'chosen'"));
  EXPECT_EQ(list({"chosen_source_test", "verdict_test"}).exit_code, 2);
}

TEST(ChosenSource, may_be_run_without_some_tests_but_not_with_tests_of_others) {
  const ProgramResult result = list({"chosen_source_test", "--gtest_filter=-*.is_not_*"});
  EXPECT_THAT(result.output,
              AllOf(HasSubstr("is_the_only"), Not(HasSubstr("is_not_of")), Not(HasSubstr("ExitReport."))));
  EXPECT_EQ(list({"chosen_source_test", "--gtest_filter=ExitReport.*"}).exit_code, 2);
}

}  // namespace lockstep::chosen_source_test
