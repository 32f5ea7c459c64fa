#include "launch/stale_report.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "base/io/file.hpp"
#include "files/folder/folder_lock.hpp"
#include "launch/parse.hpp"
#include "runtime/failure/failure_report.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::stale_report_test {

namespace fs = std::filesystem;

class StaleReportTest : public testing::Test {
 protected:
  void SetUp() override {
    failure_report::set_rank(0, "host");
    write_file_atomically(folder_.path() / "failure.json", R"({"code": 75, "sentence": "an earlier reason"})");
  }
  // A command line with a value that is refused.
  int refused(const std::string& output) const {
    std::string program = "program";
    std::string option = "--output=" + output;
    std::string wrong = "--count=x";
    char* words[] = {program.data(), option.data(), wrong.data(), nullptr};
    testing::internal::CaptureStderr();
    const auto code = parse_options(3, words, [](CLI::App& app) {
      app.add_option("--output");
      app.add_option("--count")->check(CLI::Number);
    });
    testing::internal::GetCapturedStderr();
    return code.value_or(0);
  }
  nlohmann::json report() const { return nlohmann::json::parse(read_file(folder_.path() / "failure.json", 1 << 16)); }

  const TemporaryFolder folder_;
};

TEST_F(StaleReportTest, a_refused_command_line_replaces_the_report_of_an_earlier_attempt) {
  EXPECT_EQ(refused(folder_.path()), 2);
  EXPECT_EQ(report()["code"], 2);
  EXPECT_NE(report()["sentence"].get<std::string>().find("--count"), std::string::npos) << report();
  EXPECT_FALSE(fs::exists(folder_.path() / "lock"));
}

TEST_F(StaleReportTest, a_folder_without_a_report_or_of_another_job_stays_as_it_is) {
  {
    const FolderLock other(folder_.path(), "--output");
    EXPECT_EQ(refused(folder_.path()), 2);
    EXPECT_EQ(report()["sentence"], "an earlier reason");
  }
  fs::remove(folder_.path() / "failure.json");
  EXPECT_EQ(refused(folder_.path()), 2);
  EXPECT_FALSE(fs::exists(folder_.path() / "failure.json"));
  EXPECT_EQ(refused((folder_.path() / "absent").string()), 2);
  EXPECT_FALSE(fs::exists(folder_.path() / "absent"));
}

// A file of this name that another program wrote is not ours to replace.
TEST_F(StaleReportTest, a_file_that_is_no_report_stays) {
  write_file_atomically(folder_.path() / "failure.json", "{}");
  EXPECT_EQ(refused(folder_.path()), 2);
  EXPECT_EQ(report(), nlohmann::json::object());
}

}  // namespace lockstep::stale_report_test
