#include "slurm/retry/attempts_file.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "base/io/file.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::attempts_file_test {

Attempt example() {
  Attempt attempt;
  attempt.job = 17;
  attempt.attempt = 2;
  attempt.cause = Cause::bad_node;
  attempt.kind = RetryKind::transient;
  attempt.code = 71;
  attempt.action = RetryAction::requeue;
  attempt.sentence = "GPU 3 of n2 is \"lost\"\n";
  attempt.counted = true;
  attempt.transient_retries = 4;
  attempt.counted_retries = 1;
  attempt.checkpoint_step = 120;
  attempt.excluded = {"n2"};
  attempt.started = 1795000000;
  attempt.ended = 1795000100;
  attempt.nodes = {"n1", "n2"};
  attempt.log_from = 4711;
  return attempt;
}

Attempt begun(std::int64_t number) {
  Attempt attempt;
  attempt.job = 17;
  attempt.attempt = number;
  return attempt;
}

class AttemptsFileTest : public testing::Test {
 protected:
  TemporaryFolder folder_;
  std::filesystem::path file_ = folder_.path() / "train-17.attempts.jsonl";
};

TEST_F(AttemptsFileTest, a_line_has_every_field_and_comes_back) {
  const std::string line = attempt_line(example());
  EXPECT_EQ(
      line,
      R"({"action":"requeue","attempt":2,"cause":"bad_node","checkpoint_step":120,"code":71,"counted":true,)"
      R"("counted_retries":1,"ended":1795000100,"excluded":["n2"],"job":17,"kind":"transient","log_from":4711,)"
      R"("nodes":["n1","n2"],"sentence":"GPU 3 of n2 is \"lost\"\n","started":1795000000,"transient_retries":4})");
  ASSERT_TRUE(parse_attempt(line));
  EXPECT_EQ(attempt_line(*parse_attempt(line)), line);
  EXPECT_EQ(attempt_line(*parse_attempt(attempt_line(begun(0)))), attempt_line(begun(0)));
}

TEST_F(AttemptsFileTest, lines_are_added_and_the_last_of_an_attempt_counts) {
  AttemptsFile file(file_, 17);
  EXPECT_TRUE(file.attempts().empty());
  EXPECT_EQ(file.history().counted_retries, 0);
  file.add(begun(2));
  file.add(example());
  const AttemptsFile again(file_, 17);
  ASSERT_EQ(again.attempts().size(), 1U);
  EXPECT_EQ(again.find(2)->cause, Cause::bad_node);
  EXPECT_EQ(again.find(1), nullptr);
  EXPECT_EQ(again.history().transient_retries, 4);
  EXPECT_EQ(again.history().counted_retries, 1);
  EXPECT_EQ(again.history().excluded, std::vector<std::string>{"n2"});
  EXPECT_EQ(read_file(file_, 1 << 20), attempt_line(begun(2)) + "\n" + attempt_line(example()) + "\n");
}

TEST_F(AttemptsFileTest, what_is_no_line_of_this_job_is_passed_over_and_stays) {
  Attempt of_another = example();
  of_another.job = 18;
  of_another.attempt = 5;
  const std::string text = "not json\n" + attempt_line(of_another) + "\n" + attempt_line(example()) + "\n{\"job\":";
  std::ofstream(file_) << text;
  AttemptsFile file(file_, 17);
  ASSERT_EQ(file.attempts().size(), 1U);
  file.add(begun(3));
  EXPECT_EQ(read_file(file_, 1 << 20), text + "\n" + attempt_line(begun(3)) + "\n");
}

TEST_F(AttemptsFileTest, values_that_a_field_may_not_have_make_it_no_line_of_ours) {
  const auto with = [](const std::string& from, const std::string& to) {
    std::string line = attempt_line(example());
    return parse_attempt(line.replace(line.find(from), from.size(), to));
  };
  EXPECT_TRUE(with("\"n2\"", "\"n3\""));
  EXPECT_FALSE(with("\"n2\"", "\"n2;reboot\""));
  EXPECT_FALSE(with("\"n2\"", "\"n[2-3]\""));
  EXPECT_FALSE(with("bad_node", "bad_luck"));
  EXPECT_FALSE(with("requeue", "reboot"));
  EXPECT_FALSE(with("\"transient\"", "\"passing\""));
  EXPECT_FALSE(with("\"counted_retries\":1", "\"counted_retries\":-1"));
  EXPECT_FALSE(with("\"counted_retries\":1", "\"counted_retries\":1e300"));
  EXPECT_FALSE(with("\"job\":17", "\"job\":\"17\""));
}

}  // namespace lockstep::attempts_file_test
