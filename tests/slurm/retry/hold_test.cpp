#include "slurm/retry/hold.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "support/messages.hpp"

namespace lockstep::hold_test {

TEST(HoldTest, a_time_has_a_unit_or_a_form_of_slurm) {
  EXPECT_EQ(parse_hold("90s"), 90);
  EXPECT_EQ(parse_hold("30min"), 1800);
  EXPECT_EQ(parse_hold("2h"), 7200);
  EXPECT_EQ(parse_hold("30"), 1800) << "minutes";
  EXPECT_EQ(parse_hold("1:30"), 90);
  EXPECT_EQ(parse_hold("1:30:05"), 5405);
  EXPECT_EQ(parse_hold("1-12"), 129600);
  EXPECT_EQ(parse_hold("1-12:30"), 131400);
  EXPECT_EQ(parse_hold("1-12:30:05"), 131405);
  EXPECT_EQ(parse_hold("30-0"), 2592000);
}

TEST(HoldTest, other_texts_are_refused) {
  for (const char* text : {"", "soon", "0", "0s", "0.5s", "-5", "1-", "-", "1:", ":1", "1:2:3:4", "1-2-3", "1-2:3:4:5",
                           "1d", "31-0", "721h", "30 min", "99999999999999999999"}) {
    EXPECT_THROW(parse_hold(text), Error) << text;
  }
  expect_error(Failure::usage, {"'soon'", "LOCKSTEP_HOLD_ON_FAILURE", "30min"}, [] { parse_hold("soon"); });
}

Finding of(Cause cause) { return {cause, row_of(cause).kind, 1, {}, ""}; }

TEST(HoldTest, only_a_failure_of_the_program_is_worth_a_look) {
  for (const Cause cause : {Cause::failed, Cause::killed, Cause::crashed, Cause::out_of_memory, Cause::import_error,
                            Cause::usage, Cause::diverged, Cause::other_code, Cause::no_program}) {
    EXPECT_TRUE(is_worth_a_look(of(cause))) << row_of(cause).name;
  }
  for (const Cause cause : {Cause::done, Cause::stopped_for_good, Cause::cancelled, Cause::time_limit, Cause::preempted,
                            Cause::requeued, Cause::node_failure, Cause::stopped_early, Cause::bad_node,
                            Cause::resource_conflict, Cause::too_many_attempts}) {
    EXPECT_FALSE(is_worth_a_look(of(cause))) << row_of(cause).name;
  }
  EXPECT_TRUE(is_worth_a_look({Cause::rule, RetryKind::permanent, 1, {}, ""}));
  EXPECT_FALSE(is_worth_a_look({Cause::rule, RetryKind::transient, 1, {}, ""}));
}

}  // namespace lockstep::hold_test
