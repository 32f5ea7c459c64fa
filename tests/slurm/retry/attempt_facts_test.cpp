#include "slurm/retry/attempt_facts.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <set>

#include "support/messages.hpp"

namespace lockstep::attempt_facts_test {

AttemptFacts with_code(int launcher_code) {
  AttemptFacts facts;
  facts.launcher_code = launcher_code;
  facts.nodes = {"n1", "n2"};
  return facts;
}
// As srun reports it: the exit report's code is the program's own, srun's is that of the ranks it killed.
AttemptFacts with_verdict(int code, int signal = 0) {
  AttemptFacts facts = with_code(137);
  facts.exit_report = ExitReport{code, signal, "n2", "rank 3 on n2 says why."};
  return facts;
}
AttemptFacts in_state(const std::string& state, std::int64_t restarts, const std::string& log = "") {
  AttemptFacts facts = with_verdict(75);
  facts.job_state = state;
  facts.restarts = restarts;
  facts.log_tail = log;
  return facts;
}
AttemptFacts accounted(const std::string& lines) {
  AttemptFacts facts = with_code(137);
  facts.accounting = lines;
  return facts;
}
AttemptFacts logged(const std::string& log) {
  AttemptFacts facts = with_code(1);
  facts.log_tail = log;
  return facts;
}
// As run_roles reports it.
AttemptFacts of_role(const std::string& error_line, int code = 1) {
  AttemptFacts facts = with_verdict(code);
  facts.exit_report->sentence = "role 'worker' failed.";
  facts.exit_report->error_line = error_line;
  return facts;
}
AttemptFacts short_of_memory(std::int64_t kills) {
  AttemptFacts facts = with_verdict(1, SIGKILL);
  facts.oom_kills = kills;
  return facts;
}
AttemptFacts time_is_up() {
  AttemptFacts facts = in_state("COMPLETING", 0);
  facts.state_reason = "TimeLimit";
  return facts;
}
AttemptFacts stopped_for_good() {
  AttemptFacts facts = with_verdict(75);
  facts.stop_request = StopRequest::for_good;
  return facts;
}

struct Case {
  const char* what;
  AttemptFacts facts;
  Cause cause;
  RetryKind kind;
  NextNodes next = NextNodes::any;
};

constexpr RetryKind none = RetryKind::none;
constexpr RetryKind transient = RetryKind::transient;
constexpr RetryKind conflict = RetryKind::transient_conflict;
constexpr RetryKind unknown = RetryKind::unknown;
constexpr RetryKind permanent = RetryKind::permanent;

// One or more for each row of the table of causes.
const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {"code 0", with_code(0), Cause::done, none},
      {"stop_job", stopped_for_good(), Cause::stopped_for_good, permanent},
      {"scancel", in_state("COMPLETING", 0), Cause::cancelled, permanent},
      {"scancel, says sacct", accounted("17|CANCELLED by 0\n17.batch|RUNNING\n"), Cause::cancelled, permanent},
      {"time limit, says squeue", time_is_up(), Cause::time_limit, permanent},
      {"time limit, says slurmstepd",
       in_state("COMPLETING", 0, "x\n*** JOB 5 ON n1 CANCELLED AT now DUE TO TIME LIMIT ***\n"), Cause::time_limit,
       permanent},
      {"time limit, says sacct", accounted("17|TIMEOUT\n"), Cause::time_limit, permanent},
      {"scontrol requeue", in_state("COMPLETING", 1, "*** JOB 1 ON n1 CANCELLED AT now DUE TO JOB REQUEUE ***"),
       Cause::requeued, transient},
      {"preemption", in_state("COMPLETING", 1, "*** JOB 1 ON n1 CANCELLED AT now DUE TO PREEMPTION ***"),
       Cause::preempted, transient},
      {"preemption, says sacct", accounted("17|PREEMPTED\n17.0|CANCELLED\n"), Cause::preempted, transient},
      {"node failure", in_state("COMPLETING", 1, "*** JOB 1 ON n1 CANCELLED AT now DUE TO NODE FAILURE, SEE"),
       Cause::node_failure, transient},
      {"node failure, says squeue", in_state("NODE_FAIL", 0), Cause::node_failure, transient},
      {"node failure of a step, says sacct", accounted("17|RUNNING\n17.0|NODE_FAIL\n"), Cause::node_failure, transient},
      {"75", with_verdict(75), Cause::stopped_early, transient},
      {"75 without a verdict", with_code(75), Cause::stopped_early, transient},
      {"71", with_verdict(71), Cause::bad_node, transient, NextNodes::others},
      {"srun lost a node", logged("[worker[0]]  srun: error: Node failure on n2"), Cause::node_failure, transient},
      {"ECC in the log", logged("CUDA failure: uncorrectable ECC error encountered"), Cause::bad_node, transient,
       NextNodes::others},
      {"76", with_verdict(76), Cause::out_of_step, unknown},
      {"1", with_verdict(1), Cause::failed, unknown},
      {"2", with_verdict(2), Cause::usage, permanent},
      {"65", with_verdict(65), Cause::bad_data, permanent},
      {"70", with_verdict(70), Cause::out_of_memory, permanent},
      {"the kernel killed for memory", short_of_memory(1), Cause::out_of_memory, permanent},
      {"out of memory, says sacct", accounted("17|RUNNING\n17.0|OUT_OF_MEMORY\n"), Cause::out_of_memory, permanent},
      {"out of memory, cut by sacct", accounted("17|RUNNING\n17.0|OUT_OF_ME+\n"), Cause::out_of_memory, permanent},
      {"OverMemoryKill",
       logged("slurmstepd-n1: error: StepId=1.0 exceeded memory limit (331444224 > 104857600), being killed"),
       Cause::out_of_memory, permanent},
      {"OverMemoryKill of virtual memory",
       logged("slurmstepd: error: StepId=1.0 exceeded virtual memory limit (2 > 1), being killed"),
       Cause::out_of_memory, permanent},
      {"OverMemoryKill of the job", logged("slurmstepd: error: Exceeded job memory limit"), Cause::out_of_memory,
       permanent},
      {"oom_kill on stderr", logged("slurmstepd: error: Detected 1 oom_kill event in StepId=17.0."),
       Cause::out_of_memory, permanent},
      {"79", with_verdict(79), Cause::diverged, permanent},
      {"SIGKILL", with_verdict(1, SIGKILL), Cause::killed, unknown},
      {"137", with_code(137), Cause::killed, unknown},
      {"SIGTERM", with_verdict(1, SIGTERM), Cause::terminated, unknown},
      {"143", with_code(143), Cause::terminated, unknown},
      {"SIGSEGV", with_verdict(1, SIGSEGV), Cause::crashed, unknown},
      {"SIGABRT", with_code(134), Cause::crashed, unknown},
      {"SIGILL", with_verdict(1, SIGILL), Cause::illegal_instruction, permanent},
      {"SIGBUS", with_verdict(1, SIGBUS), Cause::bus_error, permanent},
      {"SIGFPE", with_code(136), Cause::arithmetic_error, permanent},
      {"SIGPIPE", with_code(141), Cause::broken_pipe, unknown},
      {"127", with_code(127), Cause::no_program, permanent},
      {"126", with_code(126), Cause::no_program, permanent},
      {"a port in use", logged("bind: Address already in use"), Cause::resource_conflict, conflict},
      {"busy nodes", logged("srun: error: Unable to create step: Requested nodes are busy"), Cause::resource_conflict,
       conflict},
      {"nodes that were busy at first",
       logged("srun: Job 17 step creation temporarily disabled, retrying (Requested nodes are busy)"), Cause::failed,
       unknown},
      {"42", with_code(42), Cause::other_code, unknown},
      {"a missing module", of_role("ModuleNotFoundError: No module named 'x'"), Cause::import_error, permanent},
      {"an old driver", of_role("RuntimeError: CUDA driver version is insufficient"), Cause::driver_too_old, permanent},
      {"memory of a GPU", of_role("RuntimeError: CUDA out of memory. Tried", 134), Cause::out_of_memory, permanent},
      {"a full disk", of_role("cp: x: No space left on device"), Cause::disk_full, transient, NextNodes::others},
      {"an error line of another kind", of_role("out of ideas"), Cause::failed, unknown},
  };
  return all;
}

TEST(AttemptFactsTest, each_cause_is_found) {
  for (const Case& one : cases()) {
    const Finding finding = find_cause(one.facts, {});
    EXPECT_STREQ(row_of(finding.cause).name, row_of(one.cause).name) << one.what;
    EXPECT_EQ(finding.kind, one.kind) << one.what;
    EXPECT_EQ(!finding.bad_nodes.empty(), one.next == NextNodes::others) << one.what;
    EXPECT_NE(finding.sentence, "") << one.what;
  }
}

TEST(AttemptFactsTest, each_row_of_the_table_has_a_case) {
  // Those that no facts lead to: an attempt that has no end, and what the next attempt's beginning finds.
  std::set<Cause> found = {Cause::running, Cause::lost, Cause::too_many_attempts, Cause::rule};
  for (const Case& one : cases()) found.insert(one.cause);
  for (int cause = 0; cause <= static_cast<int>(Cause::rule); ++cause) {
    const CauseRow& row = row_of(static_cast<Cause>(cause));
    EXPECT_TRUE(found.contains(row.cause)) << row.name;
    EXPECT_EQ(cause_named(row.name), row.cause);
  }
  EXPECT_FALSE(cause_named("bad luck"));
}

TEST(AttemptFactsTest, the_verdict_counts_more_than_the_launchers_code) {
  EXPECT_EQ(find_cause(with_verdict(79), {}).code, 79);
  AttemptFacts facts = with_verdict(2);
  facts.launcher_code = 0;
  EXPECT_EQ(find_cause(facts, {}).cause, Cause::usage);
}

TEST(AttemptFactsTest, a_job_that_a_signal_is_on_its_way_to_still_runs) {
  for (const char* state : {"RUNNING", "SIGNALING", "RESIZING", "SUSPENDED", "STOPPED"}) {
    EXPECT_EQ(find_cause(in_state(state, 0), {}).cause, Cause::stopped_early) << state;
  }
}

TEST(AttemptFactsTest, launchers_cancel_steps_and_that_is_no_scancel) {
  EXPECT_EQ(find_cause(accounted("17.0|CANCELLED by 0\n"), {}).cause, Cause::killed);
  EXPECT_EQ(find_cause(accounted("17|RUNNING\n17.0|CANCELLED by 0\n"), {}).cause, Cause::killed);
}

TEST(AttemptFactsTest, a_program_that_has_done_its_work_is_done_whatever_slurm_does) {
  AttemptFacts facts = in_state("COMPLETING", 1);
  facts.exit_report.reset();
  facts.launcher_code = 0;
  EXPECT_EQ(find_cause(facts, {}).cause, Cause::done);
}

TEST(AttemptFactsTest, a_programs_own_word_is_believed_before_signs_in_its_log) {
  AttemptFacts facts = with_verdict(79);
  facts.log_tail = "oom_kill";
  facts.oom_kills = 3;
  EXPECT_EQ(find_cause(facts, {}).cause, Cause::diverged);
}

TEST(AttemptFactsTest, the_sentence_is_the_verdicts_or_the_causes) {
  EXPECT_EQ(find_cause(with_verdict(79), {}).sentence, with_verdict(79).exit_report->sentence);
  expect_message(find_cause(with_verdict(1, SIGKILL), {}).sentence, {"SIGKILL", with_verdict(1).exit_report->sentence});
  expect_message(find_cause(with_code(137), {}).sentence, {"SIGKILL", "code 137"});
}

// "the host or a GPU ran out of memory" said neither how much nor what to change.
TEST(AttemptFactsTest, a_kill_for_lack_of_memory_names_the_sizes_and_the_option) {
  AttemptFacts facts = with_code(137);
  facts.oom_kills = 1;
  expect_message(find_cause(facts, {}).sentence, {"memory", "--mem", "--mem-per-cpu", "code 137"});
  facts.memory = {4000, "--mem"};
  expect_message(find_cause(facts, {}).sentence, {"4000 MiB", "--mem"});
  facts.log_tail = "slurmstepd-n1: error: StepId=1.0 exceeded memory limit (331444224 > 104857600), being killed\n";
  facts.memory = {100, "--mem-per-cpu"};
  expect_message(find_cause(facts, {}).sentence, {"316 MiB", "100 MiB", "--mem-per-cpu"});
  facts.exit_report = with_verdict(1, SIGKILL).exit_report;
  expect_message(find_cause(facts, {}).sentence, {"316 MiB", facts.exit_report->sentence});
  for (const char* const log : {"exceeded memory limit (", "exceeded memory limit (1)", "exceeded memory limit () > 1",
                                "exceeded memory limit (a > b)", "exceeded memory limit (-1 > 1)"}) {
    facts.log_tail = log;
    EXPECT_EQ(find_cause(facts, {}).sentence.find("a step used"), std::string::npos) << log;
  }
  EXPECT_EQ(find_cause(with_verdict(70), {}).sentence, with_verdict(70).exit_report->sentence);
}

TEST(AttemptFactsTest, the_error_that_a_program_printed_is_quoted) {
  const std::string line = "ModuleNotFoundError: No module named 'x'";
  expect_message(find_cause(of_role(line), {}).sentence, {"Python module", line, "role 'worker' failed"});
  EXPECT_EQ(find_cause(of_role("RuntimeError: CUDA out of memory"), {}).sentence.find("--mem"), std::string::npos);
}

TEST(AttemptFactsTest, slurm_rules_and_specific_codes_count_more_than_a_printed_error) {
  const std::string line = "cp: x: No space left on device";
  AttemptFacts facts = of_role(line);
  facts.job_state = "COMPLETING";
  EXPECT_EQ(find_cause(facts, {}).cause, Cause::cancelled);
  facts = of_role(line);
  facts.log_tail = "slurmstepd: error: Detected 1 oom_kill event in StepId=17.0.\n";
  EXPECT_EQ(find_cause(facts, {}).cause, Cause::out_of_memory);
  EXPECT_EQ(find_cause(of_role(line), parse_retry_rules("permanent code 1", "rules")).cause, Cause::rule);
  EXPECT_EQ(find_cause(of_role(line, 79), {}).cause, Cause::diverged);
  facts = logged("a\n" + line + "\n");
  EXPECT_EQ(find_cause(facts, {}).cause, Cause::failed) << "Lockstep's own program, or another task, printed it";
}

// Each node of the cluster was excluded in turn, because a shared file system was full.
TEST(AttemptFactsTest, a_full_disk_is_another_nodes_once) {
  AttemptFacts facts = of_role("cp: x: No space left on device");
  EXPECT_EQ(find_cause(facts, {}).bad_nodes, std::vector<std::string>{"n2"});
  facts.disk_was_full = true;
  const Finding again = find_cause(facts, {});
  EXPECT_EQ(again.kind, RetryKind::permanent);
  EXPECT_TRUE(again.bad_nodes.empty());
  expect_message(again.sentence, {"file system is full", "previous attempt"});
  facts.disk_was_full = false;
  facts.exit_report->host = "";
  EXPECT_EQ(find_cause(facts, {}).kind, RetryKind::permanent) << "the node is unknown";
}

TEST(AttemptFactsTest, a_bad_node_is_the_verdicts_or_any_of_the_attempts) {
  EXPECT_EQ(find_cause(with_verdict(71), {}).bad_nodes, std::vector<std::string>{"n2"});
  EXPECT_EQ(find_cause(with_code(71), {}).bad_nodes, (std::vector<std::string>{"n1", "n2"}));
}

TEST(AttemptFactsTest, rules_come_after_slurm_and_before_our_own_table) {
  const RetryRules rules =
      parse_retry_rules("transient elsewhere log link is down\npermanent code 1\ntransient_conflict code 42", "rules");
  EXPECT_EQ(find_cause(in_state("COMPLETING", 0), rules).cause, Cause::cancelled);
  Finding finding = find_cause(with_verdict(1), rules);
  EXPECT_EQ(finding.kind, RetryKind::permanent);
  expect_message(finding.sentence, {"rule for code 1", with_verdict(1).exit_report->sentence});
  finding = find_cause(logged("a\nthe link is down\n"), rules);
  EXPECT_EQ(finding.cause, Cause::rule);
  EXPECT_EQ(finding.kind, RetryKind::transient);
  EXPECT_EQ(finding.bad_nodes, (std::vector<std::string>{"n1", "n2"}));
  expect_message(finding.sentence, {"rule 'link is down'", "'the link is down'"});
  EXPECT_EQ(find_cause(with_code(42), rules).kind, RetryKind::transient_conflict);
}

TEST(AttemptFactsTest, a_verdict_may_blame_several_nodes_and_none_that_is_no_name_of_one) {
  AttemptFacts facts;
  facts.nodes = {"n1", "n2", "n3", "n4"};
  const auto bad_nodes = [&](std::string_view hosts) {
    facts.exit_report =
        parse_exit_report(fmt::format(R"({{"code": 71, "host": "n1", "bad_hosts": {}, "sentence": "bad"}})", hosts));
    return find_cause(facts, {}).bad_nodes;
  };
  EXPECT_EQ(bad_nodes(R"x(["n2", "n4", "$(reboot)", "n[1-3]", 3, null])x"), (std::vector<std::string>{"n2", "n4"}));
  for (const char* hosts : {"[]", "null", "\"n2\"", "{\"n2\": 1}", "[\"n1 n2\"]"}) {
    EXPECT_EQ(bad_nodes(hosts), std::vector<std::string>{"n1"}) << hosts;
  }
}

}  // namespace lockstep::attempt_facts_test
