#include "runtime/failure/failure_report.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "support/messages.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::failure_report_test {

namespace fs = std::filesystem;

class FailureReportTest : public testing::Test {
 protected:
  FailureReportTest() {
    failure_report::set_rank(3, "gpu07");
    failure_report::set_folder(folder());
    failure_report::set_step(-1);
  }
  ~FailureReportTest() override {
    failure_report::set_folder({});
    failure_report::share({});
  }

  fs::path folder() const { return folder_.path() / "run"; }  // made when it is needed
  nlohmann::json report() const { return nlohmann::json::parse(read_file(folder() / "failure.json", 1 << 16)); }
  std::ptrdiff_t files() const { return std::distance(fs::directory_iterator(folder()), fs::directory_iterator()); }

 private:
  TemporaryFolder folder_;
};

TEST_F(FailureReportTest, has_every_field) {
  failure_report::set_step(412);
  const std::int64_t before = std::time(nullptr);
  EXPECT_TRUE(failure_report::write({79, 0, "loss is nan at step 412 (learning rate 3.2). Lower --lr."}));
  const nlohmann::json said = report();
  EXPECT_EQ(said["code"], 79);
  EXPECT_TRUE(said["signal"].is_null());
  EXPECT_EQ(said["rank"], 3);
  EXPECT_EQ(said["host"], "gpu07");
  EXPECT_EQ(said["step"], 412);
  EXPECT_EQ(said["sentence"], "loss is nan at step 412 (learning rate 3.2). Lower --lr.");
  EXPECT_GE(said["time"], before);
  EXPECT_EQ(said.size(), 7U);
  EXPECT_EQ(files(), 1) << "no temporary file stays";
}

TEST_F(FailureReportTest, names_the_hosts_that_another_attempt_had_better_avoid) {
  const std::vector<std::string> hosts = {"n1", "n\"2"};
  failure_report::write({71, 0, "bad", hosts});
  EXPECT_EQ(report()["bad_hosts"], nlohmann::json({"n1", "n\"2"}));
}

TEST_F(FailureReportTest, quotes_the_error_of_a_program_of_others) {
  failure_report::write({1, 0, "bad", {}, "say \"no\"" + std::string(1000, 'x')});
  EXPECT_EQ(report()["error_line"], "say \"no\"" + std::string(492, 'x'));
}

TEST_F(FailureReportTest, names_as_many_hosts_as_there_is_room_for) {
  const std::vector<std::string> hosts(1000, std::string(50, 'h'));
  failure_report::write({71, 0, std::string(10'000, 's'), hosts});
  EXPECT_GT(report()["bad_hosts"].size(), 50);
  EXPECT_LT(report()["bad_hosts"].size(), 100);
  EXPECT_TRUE(report().contains("time"));
}

TEST_F(FailureReportTest, the_first_report_stands) {
  EXPECT_TRUE(failure_report::write_of(1, "gpu08", {1, 9, "killed"}));
  EXPECT_FALSE(failure_report::write({65, 0, "too late"}));
  EXPECT_EQ(report()["rank"], 1);
  EXPECT_EQ(report()["host"], "gpu08");
  EXPECT_EQ(report()["signal"], 9);
  EXPECT_EQ(files(), 1);
}

TEST_F(FailureReportTest, a_new_run_removes_the_report_of_the_last) {
  failure_report::write({1, 0, "the run before"});
  failure_report::clear();
  EXPECT_EQ(files(), 0);
  EXPECT_TRUE(failure_report::write({65, 0, "this run"}));
  EXPECT_EQ(report()["sentence"], "this run");
}

TEST_F(FailureReportTest, goes_to_the_attempts_verdict_before_there_is_a_folder) {
  const fs::path verdict = folder().parent_path() / "verdict.json";
  failure_report::set_folder({});
  failure_report::set_exit_report_file(verdict);
  EXPECT_TRUE(failure_report::write({2, 0, "refused"}));
  EXPECT_EQ(nlohmann::json::parse(read_file(verdict, 1 << 16))["sentence"], "refused");
  EXPECT_EQ(failure_report::reported_code(), 2);
  failure_report::begin_attempt();
  EXPECT_FALSE(fs::exists(verdict)) << "the next attempt begins";
  failure_report::set_folder(folder());
  EXPECT_TRUE(failure_report::write({65, 0, "damaged"}));
  EXPECT_EQ(nlohmann::json::parse(read_file(verdict, 1 << 16)), report());
  EXPECT_FALSE(failure_report::write({1, 0, "too late"}));
  failure_report::set_exit_report_file({});
}

TEST_F(FailureReportTest, speaks_where_the_verdict_is_the_failure_json_of_its_folder) {
  fs::create_directory(folder());
  failure_report::set_exit_report_file(folder() / "." / "failure.json");
  failure_report::set_folder(folder());
  EXPECT_TRUE(failure_report::write({65, 0, "words"}));
  EXPECT_EQ(report()["sentence"], "words");
  failure_report::set_exit_report_file({});
}

// A training that had lost its folder wrote its report beside the results of the one that has it now.
TEST_F(FailureReportTest, writes_into_a_folder_only_while_its_lock_is_held) {
  failure_report::set_folder(folder(), {"0123abcd", nullptr});
  fs::create_directory(folder());
  std::ofstream(folder() / "lock") << R"({"token": "4567"})";
  EXPECT_TRUE(failure_report::write({76, 0, "lost"})) << "it is told all the same";
  EXPECT_FALSE(fs::exists(folder() / "failure.json"));
  fs::remove(folder() / "lock");
  failure_report::write({76, 0, "nobody's"});
  EXPECT_FALSE(fs::exists(folder() / "failure.json"));
  std::ofstream(folder() / "lock") << R"({"token": "0123abcd"})";
  failure_report::write({65, 0, "held"});
  EXPECT_EQ(report()["sentence"], "held");
  fs::remove_all(folder());
  failure_report::write({65, 0, "removed"});
  EXPECT_EQ(report()["sentence"], "removed");
}

TEST_F(FailureReportTest, keeps_the_lock_of_its_folder) {
  const auto lock = std::make_shared<int>(0);
  failure_report::set_folder(folder(), {"token", lock});
  EXPECT_EQ(lock.use_count(), 2);
  failure_report::set_folder({});
  EXPECT_EQ(lock.use_count(), 1);
}

TEST_F(FailureReportTest, is_json_whatever_the_sentence_holds) {
  failure_report::write({2, 0, "a \"quoted\" path C:\\data\tand\na new line"});
  EXPECT_EQ(report()["sentence"], "a \"quoted\" path C:\\data\tand\na new line");
}

// A path in Latin-1 made it something that no reader of JSON takes.
TEST_F(FailureReportTest, is_json_whatever_the_bytes) {
  failure_report::set_rank(3, "gpu\xff");
  failure_report::write({2, 0, "cannot read 'caf\xe9'"});
  EXPECT_EQ(report()["sentence"], "cannot read 'caf\uFFFD'");
  EXPECT_EQ(report()["host"], "gpu\uFFFD");
}

TEST_F(FailureReportTest, cuts_a_sentence_that_has_no_end) {
  failure_report::write({2, 0, std::string(100'000, '"')});
  EXPECT_EQ(report()["sentence"], std::string(1999, '"'));
}

TEST_F(FailureReportTest, speaks_where_no_file_can_be_written) {
  std::ofstream(folder().parent_path() / "file");
  failure_report::set_folder(folder().parent_path() / "file" / "below");
  EXPECT_TRUE(failure_report::write({1, 0, "words"}));
  failure_report::set_folder({});
  EXPECT_TRUE(failure_report::write({1, 0, "words"}));
}

TEST_F(FailureReportTest, keeps_errno) {
  fs::create_directory(folder());
  errno = ENOSPC;
  failure_report::write({1, 0, "words"});
  EXPECT_EQ(errno, ENOSPC);
}

TEST_F(FailureReportTest, one_of_many_that_fail_at_once_speaks) {
  std::atomic<int> report_state = 0;
  std::atomic<int> code = 0;
  failure_report::share({&report_state, &code});
  std::atomic<int> leaders = 0;
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < 8; ++rank) {
    ranks.emplace_back([&] { leaders += failure_report::write({65, 0, "words"}) ? 1 : 0; });
  }
  std::ranges::for_each(ranks, [](std::thread& rank) { rank.join(); });
  EXPECT_EQ(leaders, 1);
  EXPECT_EQ(report_state, failure_report::Shared::reported);
  EXPECT_EQ(code, 65);
}

// A thread that came second ended the process, and with it the thread that was writing: no report was left.
TEST_F(FailureReportTest, who_comes_second_goes_on_when_the_first_has_written) {
  std::atomic<int> report_state = failure_report::Shared::reporting;
  std::atomic<int> code = 0;
  failure_report::share({&report_state, &code});
  std::thread first([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    report_state = failure_report::Shared::reported;
  });
  EXPECT_FALSE(failure_report::write({65, 0, "words"}));
  EXPECT_EQ(report_state, failure_report::Shared::reported);
  first.join();
  report_state = failure_report::Shared::reporting;
  EXPECT_FALSE(failure_report::write({65, 0, "words"})) << "a first one that was killed holds nobody up for ever";
}

TEST_F(FailureReportTest, refuses_a_path_too_long_to_be_kept_ready) {
  try {
    failure_report::set_folder("/" + std::string(5000, 'x'));
    FAIL() << "no signal handler can hold that";
  } catch (const Error& error) {
    EXPECT_EQ(error.failure(), Failure::usage);
    expect_message(error.what(), {});
  }
}

}  // namespace lockstep::failure_report_test
