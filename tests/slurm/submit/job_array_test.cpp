// Job files whose instances start independently, and those whose instances reach each other by ssh.
#include "slurm/submit/job_array.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "slurm/retry/decision.hpp"
#include "support/message_of.hpp"
#include "support/messages.hpp"

namespace lockstep::job_array_test {

using testing::IsEmpty;

const std::string header = "protocolVersion: 2\nname: a-job_1\ntype: job\n";  // lines 1 to 3
const std::string ssh = "com.microsoft.pai.runtimeplugin: [{plugin: ssh, parameters: {jobssh: true}}]";

// Two workers with this command. `extras` is line 4.
std::string job_with(const std::string& extras, const std::string& command = "x") {
  return header + "extras: {" + extras + "}\ntaskRoles: {worker: {instances: 2, resourcePerInstance: {}, commands: ['" +
         command + "']}}\n";
}
std::string independent(const std::string& extras, const std::string& command = "x") {
  return job_with("gangAllocation: false, " + extras, command);
}
std::string with_ssh(const std::string& parameters) {
  return job_with("com.microsoft.pai.runtimeplugin: [{plugin: ssh, parameters: " + parameters + "}]");
}

JobFile job_of(const std::string& text) { return parse_job_file(text, "job.yaml"); }

TEST(JobArrayTest, independent_instances_are_tasks_of_an_array_with_retries_of_their_own) {
  const JobFile job =
      job_of(header +
             "extras: {gangAllocation: false, lockstep: {throttle: 1}}\ntaskRoles: {worker: {instances: 2, "
             "taskRetryCount: -1, resourcePerInstance: {}, commands: [x --name worker-1 $PAI_HOST_IP_worker]}}");
  EXPECT_THAT(job.warnings, IsEmpty());
  ASSERT_TRUE(job.array.has_value());
  EXPECT_EQ(job.array->task_retry_count, retry_every_failure);
  EXPECT_EQ(job.array->throttle, 1);
  EXPECT_FALSE(job_of(job_with("gangAllocation: true")).array.has_value());
  EXPECT_FALSE(job_of(job_with("")).array.has_value());
}

TEST(JobArrayTest, says_what_does_nothing_in_independent_instances) {
  const JobFile job = job_of("jobRetryCount: 2\n" + independent(ssh));
  EXPECT_EQ(job.array.value().task_retry_count, 0);
  ASSERT_EQ(job.warnings.size(), 2U);
  expect_message(job.warnings[0], {"line 5", "'jobRetryCount'", "'taskRetryCount'"});
  expect_message(job.warnings[1], {"line 5", "'ssh'"});
}

TEST(JobArrayTest, refuses_what_independent_instances_cannot_have) {
  struct Refusal {
    std::string text;
    std::string subject;
  };
  const std::string two_roles = header + "extras: {gangAllocation: false}\ntaskRoles: {a: {resourcePerInstance: {}, " +
                                "commands: [x]}, b: {resourcePerInstance: {}, commands: [x]}}\n";
  const std::vector<Refusal> rows = {
      {two_roles, "gangAllocation"},
      {independent("lockstep: {world: [worker]}"), "'worker'"},
      {independent("lockstep: {nodes: 1}"), "'nodes'"},
      {independent("lockstep: {output: runs}"), "--output runs/$PAI_TASK_INDEX"},
      {independent("", "x $PAI_HOST_IP_worker_0"), "'PAI_HOST_IP_worker_0'"},
      {independent("", "x ${PAI_TASK_ROLE_worker_HOST_LIST}"), "world: [worker]"},
      {independent("", "x $LOCKSTEP_MASTER_ADDRESS"), "'LOCKSTEP_MASTER_ADDRESS'"},
      {independent(ssh, "mpirun -H worker-0,worker-12 x"), "'worker-0'"},
      {job_with("lockstep: {throttle: 2}"), "'throttle'"},
  };
  for (const Refusal& row : rows) {
    const std::string message = message_of(Failure::usage, [&] { job_of(row.text); });
    expect_message(message, {"'job.yaml'", "line 4", row.subject});
  }
}

TEST(JobArrayTest, instances_reach_each_other_if_the_file_asks_for_it) {
  EXPECT_TRUE(job_of(job_with(ssh)).has_ssh);
  EXPECT_THAT(job_of(job_with(ssh)).warnings, IsEmpty());
  EXPECT_FALSE(job_of(job_with("com.microsoft.pai.runtimeplugin: [{plugin: ssh}]")).has_ssh);
  EXPECT_FALSE(job_of(with_ssh("{jobssh: false, sshbarrier: true, sshbarriertimeout: 60}")).has_ssh);
  EXPECT_THAT(message_of(Failure::usage, [] { job_of(with_ssh("{port: 1}")); }), testing::HasSubstr("'port'"));
  expect_error(Failure::usage, {"line 4", "'jobssh'"}, [] { job_of(with_ssh("{jobssh: 1}")); });
}

}  // namespace lockstep::job_array_test
