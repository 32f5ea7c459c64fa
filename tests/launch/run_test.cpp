// The end of programs, as people and job scripts see it: codes, words, failure.json, and nobody left waiting.
#include "launch/run.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <ctime>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/io/file.hpp"
#include "launch/build_info.hpp"
#include "support/messages.hpp"
#include "support/program.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::run_test {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

std::string host() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

std::size_t times(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

class RunTest : public testing::Test {
 protected:
  ProgramResult run(int ranks, const std::vector<std::string>& options) const {
    std::vector<std::string> arguments = {built_program("failing_program").string(), "--output", output().string()};
    arguments.insert(arguments.end(), options.begin(), options.end());
    return run_program(ranks == 0 ? arguments : under_mpirun(ranks, arguments));
  }

  // Three ranks of which the second ends as told.
  ProgramResult end_one_of_three(const std::string& how) const {
    const auto start = std::chrono::steady_clock::now();
    const ProgramResult result = run(3, {"--rank", "1", "--how", how});
    EXPECT_FALSE(result.timed_out);
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
    EXPECT_NE(result.exit_code, 0);
    EXPECT_THAT(result.errors, Not(HasSubstr("went on")));
    EXPECT_THAT(result.errors, Not(HasSubstr("unwound")));
    return result;
  }

  nlohmann::json report() const { return nlohmann::json::parse(read_file(output() / "failure.json", 1 << 16)); }
  void expect_report(int code, int rank, const std::string& sentence) const {
    const nlohmann::json said = report();
    EXPECT_EQ(said["code"], code);
    EXPECT_EQ(said["rank"], rank);
    EXPECT_EQ(said["host"], host());
    EXPECT_EQ(said["sentence"], sentence);
    EXPECT_EQ(said["step"], -1);
    EXPECT_LT(said["time"].get<std::int64_t>() - ::time(nullptr), 60);
  }

  // How long after the last moment of the rank that died a survivor had written it down.
  std::chrono::milliseconds delay_of_report() const {
    const auto delay = fs::last_write_time(output() / "failure.json") - fs::last_write_time(output() / "last_moment");
    return std::chrono::duration_cast<std::chrono::milliseconds>(delay);
  }

  fs::path output() const { return folder_.path(); }

 private:
  TemporaryFolder folder_;
};

std::string line(int rank, const std::string& sentence) {
  return "[rank " + std::to_string(rank) + ", " + host() + "]  " + sentence + "\n";
}

// Of a program that printed one line.
std::string sentence_of_rank_0(const std::string& errors) {
  const std::string start = "[rank 0, " + host() + "]  ";
  EXPECT_TRUE(errors.starts_with(start)) << errors;
  return errors.substr(std::min(start.size(), errors.size()));
}

constexpr const char* damaged = "shard 'x.h5' is \"damaged\" (block 3 of 7). Re-run make_shards?";

TEST_F(RunTest, a_program_that_finishes_ends_with_0_and_leaves_no_report) {
  for (const int ranks : {0, 1, 3}) {
    const ProgramResult result = run(ranks, {"--rank", "-1"});
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    EXPECT_FALSE(fs::exists(output() / "failure.json"));
  }
}

TEST_F(RunTest, one_rank_alone_unwinds_and_ends_with_the_code_of_its_error) {
  const ProgramResult result = run(0, {"--how", "throw"});
  EXPECT_EQ(result.exit_code, 65);
  EXPECT_EQ(result.errors, line(0, "unwound") + line(0, damaged));
  expect_report(65, 0, damaged);
  EXPECT_TRUE(report()["signal"].is_null());
}

TEST_F(RunTest, a_failure_that_ends_in_good_order_is_told_by_rank_0_and_its_code_is_that_of_all) {
  for (const int ranks : {0, 3}) {
    const ProgramResult result = run(ranks, {"--rank", "-1", "--ending", "1"});
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_EQ(times(result.errors, line(0, "ended by rank 0")), 1U) << result.errors;
    EXPECT_EQ(times(result.errors, "ended by"), 1U) << result.errors;
    expect_report(1, 0, "ended by rank 0");
  }
}

TEST_F(RunTest, an_early_stop_is_reported_but_is_no_error) {
  for (const int ranks : {0, 3}) {
    const ProgramResult result = run(ranks, {"--rank", "-1", "--ending", "75"});
    EXPECT_EQ(result.exit_code, 75);
    EXPECT_THAT(result.errors, Not(HasSubstr("ended by")));
    expect_report(75, 0, "ended by rank 0");
  }
}

TEST_F(RunTest, a_throw_on_one_rank_ends_all_before_any_destructor_runs) {
  const ProgramResult result = end_one_of_three("throw");
  EXPECT_EQ(result.exit_code, 65);
  EXPECT_EQ(times(result.errors, line(1, damaged)), 1U) << result.errors;
  EXPECT_THAT(result.errors, Not(HasSubstr("rank 1 on "))) << "its own words are enough";
  expect_report(65, 1, damaged);
}

TEST_F(RunTest, what_all_ranks_throw_is_told_once) {
  const ProgramResult result = run(3, {"--rank", "-1", "--how", "throw"});
  EXPECT_EQ(result.exit_code, 65);
  EXPECT_EQ(times(result.errors, damaged), 1U) << result.errors;
  EXPECT_EQ(report()["code"], 65);
  // mpirun printed more about it than the sentence has.
  EXPECT_THAT(result.errors, Not(HasSubstr("MPI_ABORT")));
}

// The ranks that refuse wait for the others a second, and no longer.
TEST_F(RunTest, what_two_of_three_ranks_refuse_ends_the_third) {
  const auto start = std::chrono::steady_clock::now();
  const ProgramResult result = run(3, {"--rank", "-1", "--how", "throw_but_on_rank_2"});
  EXPECT_EQ(result.exit_code, 65);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
  EXPECT_EQ(times(result.errors, damaged), 1U) << result.errors;
}

TEST_F(RunTest, a_throw_in_a_thread_ends_the_job_alike) {
  for (const int ranks : {0, 2}) {
    const ProgramResult result = run(ranks, {"--how", "throw_in_thread"});
    EXPECT_EQ(result.exit_code, 65);
    EXPECT_EQ(times(result.errors, line(0, damaged)), 1U) << result.errors;
    expect_report(65, 0, damaged);
  }
}

TEST_F(RunTest, want_of_memory_is_70) {
  std::string sentence;
  for (const int ranks : {0, 2}) {
    const ProgramResult result = run(ranks, {"--how", "bad_alloc"});
    EXPECT_EQ(result.exit_code, 70);
    sentence = report()["sentence"];
    expect_message(sentence, {"out of memory"});
    EXPECT_THAT(result.errors, HasSubstr(line(0, sentence)));
    expect_report(70, 0, sentence);
  }
  // Asked for more than a container may have, a program ended with 1 and the name of a C++ class.
  const ProgramResult longest = run(0, {"--how", "length_error"});
  EXPECT_EQ(longest.exit_code, 70);
  EXPECT_THAT(longest.errors, HasSubstr(line(0, sentence)));
}

TEST_F(RunTest, an_exception_of_a_library_is_told_in_its_words) {
  const ProgramResult result = run(0, {"--how", "throw_other"});
  EXPECT_EQ(result.exit_code, 1);
  expect_report(1, 0, "map::at");
}

// "filesystem error: status: Too many levels of symbolic links [...]", with code 1, whatever had gone wrong.
TEST_F(RunTest, what_the_file_system_refuses_is_told_in_our_words) {
  for (const int ranks : {0, 2}) {
    const ProgramResult result = run(ranks, {"--how", "throw_file_system"});
    EXPECT_EQ(result.exit_code, 2);
    const std::string sentence = report()["sentence"];
    expect_message(sentence, {"'/no/such/folder'"});
    EXPECT_EQ(times(result.errors, line(0, sentence)), 1U) << result.errors;
    expect_report(2, 0, sentence);
  }
}

TEST_F(RunTest, a_path_is_told_with_its_option) {
  for (const int ranks : {0, 2}) {
    const ProgramResult result = run(ranks, {"--rank", "-1", "--how", "throw_file_system", "--input", "/no/such"});
    EXPECT_EQ(result.exit_code, 2);
    const std::string sentence = report()["sentence"];
    EXPECT_THAT(sentence, HasSubstr("'/no/such/folder' (--input)"));
    EXPECT_EQ(times(result.errors, sentence), 1U) << result.errors;  // by any rank
  }
}

TEST_F(RunTest, what_the_system_refuses_comes_with_advice) {
  const ProgramResult result = run(0, {"--how", "throw_system"});
  EXPECT_EQ(result.exit_code, 2);
  const std::string sentence = report()["sentence"];
  expect_message(sentence, {"ulimit -n"});
  expect_report(2, 0, sentence);
}

// Both ranks said so, and to enlarge it.
TEST_F(RunTest, shared_memory_that_cannot_be_written_is_told_once) {
  std::vector<std::string> words = {
      "unshare", "--mount", "sh", "-c", "mount -o remount,ro,bind /dev/shm 2>/dev/null || exit 100; exec \"$@\"", "sh"};
  const std::vector<std::string> command = under_mpirun(2, {built_program("failing_program").string()});
  words.insert(words.end(), command.begin(), command.end());
  const ProgramResult result = run_program(words);
  if (result.exit_code == 100 || result.errors.find("unshare: ") != std::string::npos) {
    GTEST_SKIP() << "mount is not permitted here";
  }
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(times(result.errors, "Read-only file system"), 1U) << result.errors;
  EXPECT_EQ(times(result.errors, "/dev/shm"), 1U) << result.errors;
}

std::string death(const std::string& words) {
  return "rank 1 on " + host() + " " + words +
         ". The other ranks cannot continue without it. Check its last messages and the memory of the node.";
}

// By one survivor. Open MPI 5 may end it between its report and its message.
void expect_told(const ProgramResult& result, const std::string& sentence) {
  const std::size_t least = result.errors.find("prterun") == std::string::npos ? 1 : 0;
  EXPECT_THAT(times(result.errors, sentence), testing::AllOf(testing::Ge(least), testing::Le(1U))) << result.errors;
}

// Before Linux 6.15 the launcher may have collected a dead rank, and with it how it died, before a survivor looks.
const std::string unseen = "was killed or ended without a word";

TEST_F(RunTest, a_killed_rank_is_named_by_one_survivor) {
  const ProgramResult result = end_one_of_three("kill");
  const nlohmann::json signal = report()["signal"];
  const std::string sentence = death(signal.is_null() ? unseen : "was killed by SIGKILL");
  expect_report(1, 1, sentence);
  EXPECT_TRUE(signal.is_null() || signal == SIGKILL) << signal;
  expect_told(result, sentence);
  EXPECT_LT(delay_of_report(), std::chrono::seconds(2));
}

TEST_F(RunTest, a_rank_that_exits_early_is_named_with_its_code) {
  const ProgramResult result = end_one_of_three("exit");
  const bool was_seen = report()["code"] == 3;
  const std::string sentence = death(was_seen ? "exited with code 3 before the job was complete" : unseen);
  expect_report(was_seen ? 3 : 1, 1, sentence);
  expect_told(result, sentence);
}

TEST_F(RunTest, a_rank_that_exits_early_with_0_is_a_failure_too) {
  end_one_of_three("exit_0");
  EXPECT_EQ(report()["code"], 1);
  EXPECT_EQ(report()["rank"], 1);
}

TEST_F(RunTest, a_terminated_rank_still_ends) {
  end_one_of_three("terminate");
  EXPECT_EQ(report()["rank"], 1);
  EXPECT_TRUE(report()["signal"].is_null() || report()["signal"] == SIGTERM) << report();
}

TEST_F(RunTest, a_crash_is_told_by_the_rank_that_crashes) {
  const std::vector<std::pair<std::string, std::string>> crashes = {
      {"segfault", "SIGSEGV"}, {"stack", "SIGSEGV"}, {"abort", "SIGABRT"}};
  for (const auto& [how, signal] : crashes) {
    const ProgramResult result = end_one_of_three(how);
    const std::string sentence = report()["sentence"];
    expect_message(sentence, {signal});
    EXPECT_EQ(times(result.errors, line(1, sentence)), 1U) << result.errors;
    expect_report(1, 1, sentence);
    EXPECT_EQ(report()["signal"], how == "abort" ? SIGABRT : SIGSEGV);
  }
}

TEST_F(RunTest, a_crash_of_one_rank_alone_is_told_too) {
  const ProgramResult result = run(0, {"--how", "segfault"});
  EXPECT_EQ(result.exit_code, -1) << "the signal takes its course";
  EXPECT_EQ(report()["signal"], SIGSEGV);
}

TEST_F(RunTest, a_folder_that_cannot_be_written_does_not_silence_the_message) {
  const std::vector<std::string> arguments = {built_program("failing_program").string(), "--how", "throw", "--output",
                                              "/proc/nowhere"};
  EXPECT_THAT(run_program(arguments).errors, HasSubstr(line(0, damaged)));
  EXPECT_THAT(run_program(under_mpirun(2, arguments)).errors, HasSubstr(line(0, damaged)));
}

TEST_F(RunTest, a_wrong_option_names_the_nearest_and_ends_all_ranks_with_2) {
  for (const int ranks : {0, 3}) {
    const ProgramResult result = run(ranks, {"--hwo", "throw"});
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_EQ(times(result.errors, "'--hwo'"), 1U) << result.errors;
    EXPECT_THAT(result.errors, Not(HasSubstr("MPI_ABORT")));
  }
}

TEST_F(RunTest, a_wrong_value_ends_with_2) {
  const ProgramResult result = run(0, {"--rank", "one"});
  EXPECT_EQ(result.exit_code, 2);
  expect_message(sentence_of_rank_0(result.errors), {"--rank", "one"});
}

// --tf32=0x1 was yes, --tf32=maybe was nothing at all.
TEST_F(RunTest, a_flag_with_a_value_ends_with_2) {
  for (const std::string value : {"0x1", "no", "12abc"}) {
    const ProgramResult result = run(0, {"--quietly=" + value});
    EXPECT_EQ(result.exit_code, 2);
    expect_message(sentence_of_rank_0(result.errors), {"--quietly"});
  }
}

TEST_F(RunTest, an_option_without_its_value_ends_with_2) {
  for (const std::vector<std::string>& options : {std::vector<std::string>{"--rank"}, {"--rank="}}) {
    const ProgramResult result = run(0, options);
    EXPECT_EQ(result.exit_code, 2);
    expect_message(sentence_of_rank_0(result.errors), {"--rank"});
  }
}

// --output= took the next option as its value.
TEST_F(RunTest, an_option_without_its_value_takes_no_other_option) {
  const ProgramResult result = run(0, {"--input=", "--quietly"});
  EXPECT_EQ(result.exit_code, 2);
  expect_message(sentence_of_rank_0(result.errors), {"--input", "''"});
  EXPECT_EQ(run(0, {"--how=", "--rank", "1"}).exit_code, 0);
}

TEST_F(RunTest, an_option_with_two_values_ends_with_2) {
  const ProgramResult result = run(0, {"--rank", "1", "--rank", "1"});
  EXPECT_EQ(result.exit_code, 2);
  expect_message(sentence_of_rank_0(result.errors), {"--rank"});
}

// Help was refused if the command line had a mistake.
TEST_F(RunTest, help_and_versions_are_printed_whatever_else_is_wrong) {
  for (const char* wrong : {"--rank=one", "--hwo=throw", "--how", "throw"}) {
    const ProgramResult help = run(0, {wrong, "--help"});
    EXPECT_EQ(help.exit_code, 0) << help.errors;
    EXPECT_EQ(times(help.output, "Ends as told."), 1U);
    EXPECT_EQ(run(0, {wrong, "--help-all"}).output, help.output);
    EXPECT_EQ(times(run(0, {"--version", wrong}).output, "lockstep"), 1U);
  }
}

// Help for `head -1` ended with "Broken pipe (the output is lost). Check the file system."
TEST_F(RunTest, a_reader_that_goes_ends_the_program_without_a_word) {
  const std::string script = "trap '' PIPE; { sleep 0.1; \"$0\" --help; } | true; exit ${PIPESTATUS[0]}";
  const ProgramResult result = run_program({"bash", "-c", script, built_program("failing_program").string()});
  EXPECT_EQ(result.exit_code, 128 + SIGPIPE);
  EXPECT_EQ(result.errors, "");
}

TEST_F(RunTest, help_and_versions_are_printed_once) {
  for (const int ranks : {0, 2}) {
    const ProgramResult help = run(ranks, {"--help"});
    EXPECT_EQ(help.exit_code, 0);
    EXPECT_EQ(times(help.output, "Ends as told."), 1U);
    EXPECT_EQ(times(help.output, "--output"), 1U);
    const ProgramResult version = run(ranks, {"--version"});
    EXPECT_EQ(version.exit_code, 0);
    const std::size_t commits = build_info().commit.empty() ? 0 : 1;  // none: built outside a repository
    EXPECT_EQ(times(version.output, "\ncommit "), commits) << version.output;
    for (const char* library :
         {"lockstep", "compiler", "MPI ", "HDF5", "zlib", "xxHash", "libsodium", "fmt", "CLI11"}) {
      EXPECT_EQ(times(version.output, std::string("\n") + library) + version.output.starts_with(library), 1U)
          << library << " in\n"
          << version.output;
    }
    EXPECT_EQ(times(version.output, "\nNCCL "), times(version.output, "\ncuDNN "));
  }
}

}  // namespace lockstep::run_test
