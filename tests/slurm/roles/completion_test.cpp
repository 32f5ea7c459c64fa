#include "slurm/roles/completion.hpp"

#include <gtest/gtest.h>

#include "support/messages.hpp"

namespace lockstep::completion_test {

Role role(const std::string& name, std::int64_t instances, std::int64_t min_failed, std::int64_t min_succeeded) {
  Role made{.name = name, .instances = instances, .command = {"program"}};
  made.min_failed_instances = min_failed;
  made.min_succeeded_instances = min_succeeded;
  return made;
}

// One row of a table: what has ended so far, and what that makes of the job.
struct Row {
  std::vector<InstanceEnd> ends;
  std::optional<int> code;  // none: the job goes on
};

void expect_rows(const std::vector<Role>& roles, const std::vector<Row>& rows, StopAsked stop = StopAsked::no) {
  check_roles(roles);
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const std::optional<JobEnd> end = job_end(roles, rows[row].ends, stop);
    EXPECT_EQ(end ? std::optional(end->code) : std::nullopt, rows[row].code) << "row " << row;
  }
}

std::string sentence(const std::vector<Role>& roles, const std::vector<InstanceEnd>& ends,
                     StopAsked stop = StopAsked::no) {
  const std::optional<JobEnd> end = job_end(roles, ends, stop);
  return end ? end->sentence : "goes on";
}

TEST(CompletionTest, a_role_fails_with_its_first_failure_and_succeeds_with_its_last_success_unless_told_otherwise) {
  const Role as_declared{.name = "worker", .instances = 3, .command = {"program"}};
  EXPECT_EQ(as_declared.min_failed_instances, 1);
  EXPECT_EQ(as_declared.min_succeeded_instances, 3);
  expect_rows({as_declared}, {{{}, std::nullopt},
                              {{{0, 0, 0}}, std::nullopt},
                              {{{0, 0, 0}, {0, 2, 0}}, std::nullopt},
                              {{{0, 0, 0}, {0, 2, 0}, {0, 1, 0}}, 0},
                              {{{0, 2, 65}}, 65},
                              {{{0, 0, 0}, {0, 2, 0}, {0, 1, 139}}, 139}});
}

TEST(CompletionTest, the_end_of_a_task_of_an_array_decides_alone) {
  const std::vector<Role> roles = role_of_array_task({role("worker", 50, 3, 50)}, 7);
  expect_rows(roles, {{{}, std::nullopt}, {{{0, 7, 0}}, 0}, {{{0, 7, 3}}, 3}});
  expect_message(sentence(roles, {{0, 7, 3}}), {"worker[7]", "code 3"});
  expect_message(sentence(roles, {{0, 7, 0}}), {"worker[7]"});
  expect_rows(roles, {{{{0, 7, 75}}, 75}}, StopAsked::yes);
}

TEST(CompletionTest, a_master_dominates) {
  expect_rows({role("master", 1, 1, 1), role("worker", 2, never, never)}, {{{{1, 0, 2}, {1, 1, 137}}, std::nullopt},
                                                                           {{{1, 0, 0}, {1, 1, 0}}, std::nullopt},
                                                                           {{{1, 0, 2}, {0, 0, 0}}, 0},
                                                                           {{{1, 0, 0}, {0, 0, 79}}, 79}});
}

TEST(CompletionTest, all_workers_dominate) {
  expect_rows({role("master", 1, never, never), role("worker", 3, 1, 3)}, {{{{0, 0, 1}}, std::nullopt},
                                                                           {{{1, 0, 0}, {1, 1, 0}}, std::nullopt},
                                                                           {{{1, 0, 0}, {1, 1, 0}, {1, 2, 0}}, 0},
                                                                           {{{1, 0, 0}, {1, 1, 70}}, 70}});
}

TEST(CompletionTest, any_worker_dominates) {
  expect_rows({role("worker", 3, 3, 1)}, {{{{0, 0, 1}, {0, 1, 2}}, std::nullopt},
                                          {{{0, 0, 1}, {0, 1, 2}, {0, 2, 0}}, 0},
                                          {{{0, 0, 1}, {0, 1, 2}, {0, 2, 71}}, 71}});
}

TEST(CompletionTest, a_server_that_never_ends_does_not_keep_workers_that_finish) {
  expect_rows({role("server", 1, 1, never), role("worker", 2, 1, 2)},
              {{{{1, 0, 0}}, std::nullopt}, {{{1, 0, 0}, {1, 1, 0}}, 0}, {{{1, 0, 0}, {0, 0, 134}}, 134}});
}

TEST(CompletionTest, where_no_threshold_is_reached_a_job_whose_instances_have_all_ended_has_succeeded) {
  expect_rows({role("a", 1, never, never), role("b", 2, never, 2)},
              {{{{0, 0, 1}, {1, 0, 1}}, std::nullopt}, {{{0, 0, 1}, {1, 0, 1}, {1, 1, 1}}, 0}});
}

TEST(CompletionTest, the_first_end_that_reaches_a_threshold_decides) {
  const std::vector<Role> roles = {role("a", 2, 1, 1), role("b", 1, 1, 1)};
  expect_rows(roles, {{{{0, 0, 0}, {1, 0, 2}}, 0}, {{{1, 0, 2}, {0, 0, 0}}, 2}, {{{0, 1, 1}, {0, 0, 0}}, 1}});
}

TEST(CompletionTest, roles_of_one_world_end_together_and_count_as_one) {
  Role chief = role("chief", 1, 1, 1);
  Role worker = role("worker", 3, 3, 3);
  chief.world = worker.world = "training";
  const auto together = [](int code) {
    return std::vector<InstanceEnd>{{0, 0, code}, {1, 0, code}, {1, 1, code}, {1, 2, code}};
  };
  expect_rows({chief, worker}, {{together(0), 0}, {together(76), 76}});
  chief.min_failed_instances = never;
  expect_rows({chief, worker}, {{together(76), 76}});  // whatever the threshold is, a world that fails reaches it
  worker.min_failed_instances = never;
  expect_rows({chief, worker}, {{together(76), 0}});
}

TEST(CompletionTest, a_job_that_was_asked_to_stop_stops_early_unless_something_else_decides) {
  const std::vector<Role> roles = {role("server", 1, 1, never), role("worker", 2, 1, 2)};
  expect_rows(roles,
              {{{{1, 0, 75}}, std::nullopt},
               {{{1, 0, 75}, {1, 1, 75}}, std::nullopt},
               {{{1, 0, 75}, {1, 1, 75}, {0, 0, 143}}, 75},
               {{{1, 0, 137}, {1, 1, 138}, {0, 0, 130}}, 75},
               {{{1, 0, 0}, {1, 1, 0}}, 0},
               {{{1, 0, 75}, {1, 1, 65}}, 65}},
              StopAsked::yes);
  expect_rows(roles, {{{{1, 0, 75}}, 75}, {{{0, 0, 143}}, 143}});
  expect_rows({role("a", 1, never, never)}, {{{{0, 0, 0}}, 0}}, StopAsked::yes);
}

TEST(CompletionTest, who_was_told_to_end_says_so_by_its_code) {
  for (const int code : {75, 143}) EXPECT_TRUE(is_end_by_request(code)) << code;
  for (const int code : {0, 1, 76, 137, 139}) EXPECT_FALSE(is_end_by_request(code)) << code;
}

TEST(CompletionTest, the_sentence_says_who_decided) {
  const std::vector<Role> roles = {role("server", 1, never, never), role("worker", 4, 2, 3)};
  expect_message(sentence(roles, {{0, 0, 1}, {1, 3, 9}, {1, 2, 65}}), {"worker"});
  expect_message(sentence(roles, {{1, 0, 0}, {0, 0, 1}, {1, 1, 65}, {1, 2, 65}}), {"worker", "65"});
  expect_message(sentence({role("a", 3, 1, 3)}, {{0, 1, 2}}), {"a"});
  expect_message(sentence(roles, {{1, 3, 0}, {1, 2, 0}, {1, 0, 0}}), {"worker"});
  const std::vector<InstanceEnd> all = {{0, 0, 1}, {1, 0, 0}, {1, 1, 0}, {1, 2, 75}, {1, 3, 143}};
  expect_message(sentence(roles, all, StopAsked::yes), {});
  expect_message(sentence({role("a", 2, never, never)}, {{0, 0, 1}, {0, 1, 0}}), {});
}

}  // namespace lockstep::completion_test
