// What report writes of real trainings, and what becomes of the page where that cannot be.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/io/file.hpp"
#include "support/no_room.hpp"
#include "support/program.hpp"
#include "support/samples/small_data_set.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::report_test {

namespace fs = std::filesystem;
using testing::HasSubstr;

class ReportTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryFolder;
    const ProgramResult made =
        run_program({built_program("make_shards"), "synthetic", "--samples", "200", "--output", at("data")});
    ASSERT_EQ(made.exit_code, 0) << made.errors;
    const ProgramResult trained =
        run_program({built_program("train_cifar"), "--data", at("data"), "--model", "lenet", "--epochs", "2",
                     "--threads", "1", "--output", at("run"), "--note", "<i>first</i>"});
    ASSERT_EQ(trained.exit_code, 0) << trained.errors;
    fs::copy(at("run"), at("other"), fs::copy_options::recursive);
  }
  static void TearDownTestSuite() { delete folder_; }
  static fs::path at(const std::string& name) { return folder_->path() / name; }
  static ProgramResult report(std::vector<std::string> words) {
    words.insert(words.begin(), built_program("report"));
    return run_program(words);
  }

  static TemporaryFolder* folder_;
};

TemporaryFolder* ReportTest::folder_ = nullptr;

TEST_F(ReportTest, a_training_becomes_a_page_at_any_number_of_ranks) {
  const fs::path page = at("page.html");
  const ProgramResult result = report({at("run"), "--data", at("data"), "--threads", "1", "--output", page});
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  const std::string html = read_file(page, 1 << 24);
  EXPECT_TRUE(html.starts_with("<!DOCTYPE html>"));
  EXPECT_TRUE(html.ends_with("</html>\n"));
  EXPECT_THAT(html, HasSubstr("<h1>Training of lenet on synthetic</h1>"));
  EXPECT_THAT(html, HasSubstr("<td>state</td><td>done</td>"));
  EXPECT_THAT(html, HasSubstr("&lt;i&gt;first&lt;/i&gt;"));
  EXPECT_THAT(html, HasSubstr("<h3>Confusion matrix</h3>"));
  EXPECT_THAT(html, HasSubstr("src=\"data:image/png;base64,iVBORw0KGgo"));
  EXPECT_THAT(html, HasSubstr("<h2>Network</h2>"));
  EXPECT_THAT(html, HasSubstr(">conv 5x5 + relu</text>"));
  const ProgramResult shared = run_program(under_mpirun(
      2, {built_program("report"), at("run"), "--data", at("data"), "--threads", "1", "--output", at("shared.html")}));
  ASSERT_EQ(shared.exit_code, 0) << shared.errors;
  EXPECT_EQ(read_file(at("shared.html"), 1 << 24), html);
  // Its own page is written anew.
  const ProgramResult compared = report({at("run"), at("other"), "--output", page});
  EXPECT_EQ(compared.exit_code, 0);
  EXPECT_THAT(compared.output, testing::Not(HasSubstr("computing")));  // it opened a device, for nothing
  EXPECT_THAT(read_file(page, 1 << 24), HasSubstr("<h1>2 trainings</h1>"));
}

// They were ignored.
TEST_F(ReportTest, options_of_the_evaluation_need_data) {
  for (const auto& [option, value] : {std::pair("--split", "test"),
                                      {"--loader-threads", "2"},
                                      {"--resize", "40"},
                                      {"--decode", "exact"},
                                      {"--test-augment", "flip"}}) {
    const ProgramResult result = report({at("run"), "--output", at("refused.html"), option, value});
    EXPECT_EQ(result.exit_code, 2) << option;
    EXPECT_THAT(result.errors, testing::AllOf(HasSubstr(option), HasSubstr("--data")));
  }
}

TEST_F(ReportTest, without_a_model_that_can_be_read_the_page_has_no_network) {
  const fs::path without = at("without");
  fs::copy(at("run"), without, fs::copy_options::recursive);
  const fs::path page = at("without.html");
  const auto has_network = [&] {
    const ProgramResult result = report({without, "--output", page});
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    return read_file(page, 1 << 24).find("<h2>Network</h2>") != std::string::npos;
  };
  EXPECT_TRUE(has_network());
  fs::resize_file(without / "model-best.h5", fs::file_size(without / "model-best.h5") / 2);
  EXPECT_FALSE(has_network());
  for (const char* name : {"model.h5", "model-best.h5", "checkpoints"}) fs::remove_all(without / name);
  EXPECT_FALSE(has_network());
}

TEST_F(ReportTest, what_cannot_be_read_is_told_and_no_page_appears) {
  const fs::path page = at("absent.html");
  const fs::path damaged = at("damaged");
  fs::copy(at("run"), damaged, fs::copy_options::recursive);
  std::ofstream(damaged / "metrics.jsonl") << "\n";
  const ProgramResult bad = report({at("run"), damaged, "--output", page});
  EXPECT_EQ(bad.exit_code, 65);
  EXPECT_THAT(bad.errors, HasSubstr("line 1 of '" + (damaged / "metrics.jsonl").string() + "'"));
  const ProgramResult none = report({at("nothing"), "--output", page});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.errors, HasSubstr("summary.json"));
  EXPECT_FALSE(fs::exists(page));
}

TEST_F(ReportTest, of_several_folders_those_without_a_training_are_left_out_with_a_word) {
  fs::create_directories(at("no training"));
  const fs::path page = at("left_out.html");
  const ProgramResult result = report({at("no training"), at("run"), "--output", page});
  EXPECT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_THAT(result.errors, HasSubstr("'" + at("no training").string() + "'"));
  EXPECT_THAT(result.output, HasSubstr("left_out.html"));
  const ProgramResult none = report({at("no training"), at("no training"), "--output", page});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.errors, HasSubstr("2 folders"));
}

TEST_F(ReportTest, a_model_of_other_classes_is_not_tested_and_the_others_are) {
  const fs::path digits = at("digits");
  write_small_data_set(digits / "train", {32, 32, 3}, 60, 60);
  write_small_data_set(digits / "test", {32, 32, 3}, 20, 20);
  const ProgramResult trained =
      run_program({built_program("train_cifar"), "--data", digits, "--model", "lenet", "--epochs", "1", "--threads",
                   "1", "--global-batch", "20", "--output", at("of others")});
  ASSERT_EQ(trained.exit_code, 0) << trained.errors;
  const fs::path page = at("of two.html");
  for (const int ranks : {1, 2}) {
    const ProgramResult result =
        run_program(under_mpirun(ranks, {built_program("report"), at("of others"), at("run"), "--data", at("data"),
                                         "--threads", "1", "--output", page}));
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    EXPECT_THAT(result.errors, HasSubstr("'" + at("of others").string() + "'"));
    EXPECT_THAT(read_file(page, 1 << 24),
                HasSubstr("Evaluation: model-best.h5 of &#39;" + at("run").string() + "&#39;"));
  }
  const ProgramResult alone = report({at("of others"), "--data", at("data"), "--output", at("alone.html")});
  EXPECT_EQ(alone.exit_code, 2);
  EXPECT_THAT(alone.errors, HasSubstr("'synthetic'"));
}

TEST_F(ReportTest, a_file_of_another_kind_stays_and_a_page_that_has_no_room_leaves_nothing) {
  const ProgramResult other = report({at("run"), "--output", at("run") / "model.h5"});
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.errors, HasSubstr("--output"));
  const fs::path folder = at("full");
  fs::create_directory(folder);
  {
    const NoRoomBeyond nothing(4096);
    const ProgramResult result = report({at("run"), "--output", folder / "page.html"});
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.errors, HasSubstr("ulimit -f"));
  }
  EXPECT_TRUE(fs::is_empty(folder));
}

}  // namespace lockstep::report_test
