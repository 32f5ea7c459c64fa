#include "support/chosen_source.hpp"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace lockstep::test {
namespace {

// GoogleTest's pattern of all tests in the source, "SuiteA.test_1:SuiteA.test_2:".
std::string tests_of(const std::string& source) {
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  std::string tests;
  for (int i = 0; i < all.total_test_suite_count(); ++i) {
    const testing::TestSuite& suite = *all.GetTestSuite(i);
    for (int k = 0; k < suite.total_test_count(); ++k) {
      const testing::TestInfo& test = *suite.GetTestInfo(k);
      if (std::filesystem::path(test.file()).stem() == source)
        tests += fmt::format("{}.{}:", suite.name(), test.name());
    }
  }
  return tests;
}

[[noreturn]] void refuse(const std::string& reason) {
  fmt::print(stderr, "{}\n", reason);
  std::exit(2);
}

}  // namespace

void choose_source(int count, char** arguments) {
  if (count == 1) return;
  // The process of a death test has these arguments, too, and a filter for its test.
  if (!GTEST_FLAG_GET(internal_run_death_test).empty()) return;
  const std::string source = arguments[1];
  if (count > 2) refuse(fmt::format("One source at most, not also '{}'.", arguments[2]));
  const std::string tests = tests_of(source);
  if (tests.empty()) refuse(fmt::format("No source of this program is called '{}'.", source));
  const std::string filter = GTEST_FLAG_GET(filter);
  const std::size_t negative = filter.find('-');
  if (const std::string positive = filter.substr(0, negative); !positive.empty() && positive != "*") {
    refuse(fmt::format("Either '{}' or --gtest_filter={}.", source, positive));
  }
  GTEST_FLAG_SET(filter, tests + (negative == std::string::npos ? "" : filter.substr(negative)));
}

}  // namespace lockstep::test
