// What a run of GoogleTest amounts to, ordered so that the largest over all ranks is the verdict of all.
#pragma once

#include <gtest/gtest.h>

namespace lockstep::test {

enum class Verdict : int { skipped, passed, failed };

// Running no test at all is a failure: a filter with a typing error must not look like success.
inline Verdict local_verdict() {
  const testing::UnitTest& tests = *testing::UnitTest::GetInstance();
  if (tests.test_to_run_count() == 0 || !tests.Passed()) return Verdict::failed;
  return tests.successful_test_count() == 0 ? Verdict::skipped : Verdict::passed;
}

// CTest counts 77 as skipped.
constexpr int exit_code(Verdict verdict) {
  return verdict == Verdict::failed ? 1 : verdict == Verdict::passed ? 0 : 77;
}

}  // namespace lockstep::test
