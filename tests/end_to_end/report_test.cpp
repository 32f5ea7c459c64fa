// What report writes of real trainings, and what becomes of the page where that cannot be.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/io/file.hpp"
#include "support/no_room.hpp"
#include "support/program.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

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
  const ProgramResult shared = run_program(under_mpirun(
      2, {built_program("report"), at("run"), "--data", at("data"), "--threads", "1", "--output", at("shared.html")}));
  ASSERT_EQ(shared.exit_code, 0) << shared.errors;
  EXPECT_EQ(read_file(at("shared.html"), 1 << 24), html);
  // Its own page is written anew.
  EXPECT_EQ(report({at("run"), at("other"), "--output", page}).exit_code, 0);
  EXPECT_THAT(read_file(page, 1 << 24), HasSubstr("<h1>2 trainings</h1>"));
}

TEST_F(ReportTest, what_cannot_be_read_is_told_and_no_page_appears) {
  const fs::path page = at("absent.html");
  const fs::path damaged = at("damaged");
  fs::copy(at("run"), damaged, fs::copy_options::recursive);
  std::ofstream(damaged / "metrics.jsonl") << "\n";
  const ProgramResult bad = report({at("run"), damaged, "--output", page});
  EXPECT_EQ(bad.exit_code, 65);
  EXPECT_THAT(bad.errors, HasSubstr("line 1 of '" + (damaged / "metrics.jsonl").string() + "' is damaged"));
  const ProgramResult none = report({at("nothing"), "--output", page});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.errors, HasSubstr("holds no training (there is no summary.json"));
  EXPECT_FALSE(fs::exists(page));
}

TEST_F(ReportTest, a_file_of_another_kind_stays_and_a_page_that_has_no_room_leaves_nothing) {
  const ProgramResult other = report({at("run"), "--output", at("run") / "model.h5"});
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.errors, HasSubstr("exists and is no report (it would be lost). Choose another name for --output."));
  const fs::path folder = at("full");
  fs::create_directory(folder);
  {
    const NoRoomBeyond nothing(4096);
    const ProgramResult result = report({at("run"), "--output", folder / "page.html"});
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.errors, HasSubstr("File too large. Raise the limit on the size of a file (ulimit -f)."));
  }
  EXPECT_TRUE(fs::is_empty(folder));
}

}  // namespace
}  // namespace lockstep
