#include "runtime/plan_file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/io/file.hpp"
#include "support/messages.hpp"
#include "support/mutation.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::plan_file_test {

namespace fs = std::filesystem;

const std::string conditions = "cuda: NVIDIA H200, compute capability 9.0, cuDNN 9.19.0, bf16";
const std::string a = "forward 3->64 kernel 7 on 8x224x224 images bf16 = engine 31 knobs 2:1\n";
const std::string b = "forward 64->64 kernel 3 on 8x56x56 features bf16 = engine 4\n";
const std::string other_b = "forward 64->64 kernel 3 on 8x56x56 features bf16 = engine 5\n";

class PlanFileTest : public testing::Test {
 protected:
  PlanFile file(const std::string& for_conditions = conditions) const { return {folder(), for_conditions}; }
  fs::path folder() const { return folder_.path() / "cache" / "lockstep"; }  // made when it is needed

  void write(const std::string& text) const {
    fs::create_directories(folder());
    std::ofstream(file().path()) << text;
  }
  std::string content() const { return read_file(file().path(), 1 << 16); }

  // What read() gives, and what it warns of.
  std::string read() {
    testing::internal::CaptureStderr();
    const std::string plan = file().read();
    warning_ = testing::internal::GetCapturedStderr();
    return plan;
  }
  // The warning, which names the file.
  std::string refusal(const std::string& text) {
    write(text);
    EXPECT_EQ(read(), "");
    const std::size_t from = warning_.find("]  ");  // after the rank and its node
    if (from == std::string::npos) return "no such warning: " + warning_;
    EXPECT_NE(warning_.find("'" + file().path().string() + "'"), std::string::npos) << warning_;
    return warning_.substr(from + 3);
  }

  std::string warning_;

 private:
  TemporaryFolder folder_;
};

TEST_F(PlanFileTest, gives_the_next_run_what_this_one_chose) {
  file().keep(a + b);
  EXPECT_EQ(read(), a + b);
  EXPECT_EQ(warning_, "");
}

TEST_F(PlanFileTest, says_what_it_is_for) {
  file().keep(b + a);
  EXPECT_EQ(content(), "lockstep kernel plan 1\n" + conditions + "\nchoices: 2\n" + a + b);
}

TEST_F(PlanFileTest, is_empty_and_silent_where_there_is_no_file) {
  EXPECT_EQ(read(), "");
  EXPECT_EQ(warning_, "");
}

TEST_F(PlanFileTest, keeps_what_other_runs_chose_for_other_shapes) {
  file().keep(a);
  file().keep(b);
  EXPECT_EQ(read(), a + b);
}

TEST_F(PlanFileTest, replaces_a_choice_by_a_newer_one) {
  file().keep(a + b);
  file().keep(other_b);
  EXPECT_EQ(read(), a + other_b);
}

TEST_F(PlanFileTest, is_not_written_again_where_nothing_is_new) {
  file().keep(a + b);
  const auto before = fs::last_write_time(file().path());
  const auto old = before - std::chrono::hours(1);
  fs::last_write_time(file().path(), old);
  file().keep(b);
  EXPECT_EQ(fs::last_write_time(file().path()), old);
}

TEST_F(PlanFileTest, lies_apart_from_those_of_other_conditions) {
  const std::string tf32 = conditions + ", tf32";
  file().keep(a);
  file(tf32).keep(b);
  EXPECT_EQ(read(), a);
  EXPECT_EQ(file(tf32).read(), b);
}

TEST_F(PlanFileTest, has_a_readable_name_of_bearable_length) {
  const std::string name = file().path().filename().string();
  EXPECT_TRUE(name.starts_with("cuda-nvidia-h200-compute-capability-9-0-cudnn-9-19-0-bf16-")) << name;
  EXPECT_TRUE(name.ends_with(".plan")) << name;
  EXPECT_LE(file(std::string(1000, 'x')).path().filename().string().size(), 160U);
}

TEST_F(PlanFileTest, leaves_nothing_behind_without_a_folder) {
  const PlanFile none("", conditions);
  none.keep(a);
  EXPECT_EQ(none.read(), "");
  EXPECT_TRUE(none.path().empty());
}

TEST_F(PlanFileTest, refuses_what_is_no_plan) {
  expect_message(refusal(""), {});
  expect_message(refusal("{}\n"), {});
  expect_message(refusal("lockstep kernel plan 2\n" + conditions + "\nchoices: 0\n"), {});
  expect_message(refusal("lockstep kernel plan 1\ncpu: another\nchoices: 1\n" + a), {conditions});
}

TEST_F(PlanFileTest, refuses_a_plan_that_is_cut_or_changed) {
  const std::string head = "lockstep kernel plan 1\n" + conditions + "\n";
  for (const std::string& rest :
       {std::string(), std::string("choices: 2"), "choices: 2\n" + a, "choices: 1\n" + a + b, "choices: 2\n" + a + a,
        "choices: 1\n" + a + "rubbish\n", "choices: 1\n" + a + "cut", "choices: -1\n" + a,
        "choices: 99999999999999999999\n" + a, std::string("choices: 1\nforward\x01 = engine 4\n"),
        "choices: 1\n" + std::string(600, 'x') + " = engine 4\n"}) {
    expect_message(refusal(head + rest), {"'problem = kernel'"});
  }
}

TEST_F(PlanFileTest, refuses_a_file_without_end) {
  expect_message(refusal(std::string(std::size_t{5} << 20, 'x')), {file().path().string(), "4195840"});
}

TEST_F(PlanFileTest, does_not_wait_for_a_pipe) {
  fs::create_directories(folder());
  ASSERT_EQ(::mkfifo(file().path().c_str(), 0600), 0);
  EXPECT_EQ(read(), "");
  EXPECT_NE(warning_.find(" is a pipe"), std::string::npos) << warning_;
}

TEST_F(PlanFileTest, no_damage_makes_it_crash_or_give_what_is_no_choice) {
  file().keep(a + b);
  const std::string whole = content();
  for (std::uint64_t round = 0; round < mutation_rounds(2000); ++round) {
    write(mutated(whole, round));
    const std::string plan = read();
    EXPECT_EQ(plan.empty(), !warning_.empty()) << round;
    EXPECT_TRUE(std::ranges::all_of(plan, [](char c) { return c == '\n' || (c >= ' ' && c <= '~'); })) << round;
  }
}

TEST_F(PlanFileTest, replaces_what_it_refused) {
  write("rubbish\n");
  file().keep(a);
  EXPECT_EQ(read(), a);
  EXPECT_EQ(warning_, "");
}

TEST_F(PlanFileTest, warns_once_where_nothing_can_be_written) {
  std::ofstream(folder().parent_path().string()) << "a file where a folder should be";
  testing::internal::CaptureStderr();
  file().keep(a);
  const std::string warned = testing::internal::GetCapturedStderr();
  for (const std::string& subject : {"'" + folder().string() + "'", std::string("--plan-folder")}) {
    EXPECT_NE(warned.find(subject), std::string::npos) << warned;
  }
  EXPECT_EQ(std::ranges::count(warned, '\n'), 1);
}

TEST(PlanUseTest, counts_what_was_chosen_as_before) {
  const PlanUse use = plan_use(a + b, a + other_b);
  EXPECT_EQ(use.recalled, 1);
  EXPECT_EQ(use.measured, 1);
  EXPECT_EQ(plan_use("", a + b).measured, 2);
  EXPECT_EQ(plan_use(a + b, a).recalled, 1);
}

TEST(DefaultPlanFolderTest, lies_in_the_users_cache) {
  JobEnvironment job;
  EXPECT_EQ(default_plan_folder(job), "");
  job.cache_folder = "/fast/cache";
  EXPECT_EQ(default_plan_folder(job), "/fast/cache/lockstep");
}

}  // namespace lockstep::plan_file_test
