#include "slurm/roles/child_process.hpp"

#include <gtest/gtest.h>
#include <poll.h>

#include <csignal>

#include "support/messages.hpp"

namespace lockstep::child_process_test {

struct Ended {
  int code = -1;
  std::vector<std::string> lines;
};

// Waits for ten seconds at most.
Ended end_of(ChildProcess child) {
  Ended ended;
  for (int tries = 0; tries < 1000; ++tries) {
    pollfd wait{child.handle(), POLLIN, 0};
    ::poll(&wait, 1, 10);
    for (std::string& line : child.lines()) ended.lines.push_back(std::move(line));
    if (const std::optional<int> code = child.exit_code()) {
      ended.code = *code;
      return ended;
    }
  }
  return ended;
}
Ended shell(const std::string& script, const std::map<std::string, std::string>& variables = {}) {
  return end_of(ChildProcess({"sh", "-c", script}, variables));
}

TEST(ChildProcessTest, its_lines_and_its_code_come_through) {
  const Ended ended = shell("echo one; echo two >&2; printf three; cat; exit 65");
  EXPECT_EQ(ended.code, 65);
  EXPECT_EQ(ended.lines, (std::vector<std::string>{"one", "two", "three"}));
}

TEST(ChildProcessTest, a_signal_counts_as_in_shells) {
  EXPECT_EQ(shell("kill -SEGV $$").code, 139);
  ChildProcess sleeping({"sleep", "100"}, {});
  sleeping.signal(SIGKILL);
  EXPECT_EQ(end_of(std::move(sleeping)).code, 137);
}

// Its end was seen only when the last of them had closed the output.
TEST(ChildProcessTest, processes_that_it_leaves_behind_are_killed) {
  const Ended ended = shell("sleep 600 & echo $!; (sleep 0.3; echo late) & exit 3");
  EXPECT_EQ(ended.code, 3);
  ASSERT_EQ(ended.lines.size(), 2U);
  EXPECT_EQ(ended.lines[1], "late");
  const std::string left = "/proc/" + ended.lines[0] + "/stat";
  const Ended state =
      shell("for i in 1 2 3 4 5; do grep -qs '(sleep) [^Z]' " + left + " || exit 0; sleep 0.2; done; exit 1");
  EXPECT_EQ(state.code, 0);
}

TEST(ChildProcessTest, variables_arrive_as_they_are) {
  EXPECT_EQ(shell("printf %s \"$ODD\"", {{"ODD", "a'b\"$(c)\nd"}}).lines, (std::vector<std::string>{"a'b\"$(c)", "d"}));
}

TEST(ChildProcessTest, long_lines_come_in_pieces) {
  const Ended ended = shell("head -c 40000 /dev/zero | tr '\\0' x; echo; echo end");
  ASSERT_EQ(ended.lines.size(), 4U);
  EXPECT_EQ(ended.lines[0].size(), 16384U);
  EXPECT_EQ(ended.lines[0].size() + ended.lines[1].size() + ended.lines[2].size(), 40000U);
  EXPECT_EQ(ended.lines[3], "end");
}

TEST(ChildProcessTest, a_program_that_is_not_there_is_told) {
  const Ended ended = end_of(ChildProcess({"/no/such program"}, {}));
  EXPECT_EQ(ended.code, 127);
  ASSERT_EQ(ended.lines.size(), 1U);
  expect_message(ended.lines[0], {"'/no/such program'", "No such file or directory"});
}

TEST(ChildProcessTest, what_outlives_it_keeps_its_output_open) {
  ChildProcess child({"sh", "-c", "sleep 0.3 & exit 3"}, {});
  EXPECT_FALSE(child.exit_code());
  EXPECT_EQ(end_of(std::move(child)).code, 3);
}

}  // namespace lockstep::child_process_test
