// What a run of GoogleTest amounts to, ordered so that the largest over all ranks is the verdict of all.
#pragma once

#include <gtest/gtest.h>

namespace lockstep::test {

enum class ExitReport : int { skipped, passed, failed };

// Running no test at all is a failure: a filter with a typing error must not look like success.
inline ExitReport local_verdict() {
  const testing::UnitTest& tests = *testing::UnitTest::GetInstance();
  if (tests.test_to_run_count() == 0 || !tests.Passed()) return ExitReport::failed;
  return tests.successful_test_count() == 0 ? ExitReport::skipped : ExitReport::passed;
}

// CTest counts 77 as skipped.
constexpr int exit_code(ExitReport verdict) {
  return verdict == ExitReport::failed ? 1 : verdict == ExitReport::passed ? 0 : 77;
}

}  // namespace lockstep::test
