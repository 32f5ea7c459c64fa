// Two results in one file, or a result in place of what is read: all are refused before a program works.
#include "launch/result_options.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "files/result_file.hpp"
#include "support/message_of.hpp"
#include "support/messages.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::result_options_test {

namespace fs = std::filesystem;

void require_place_for_note(const fs::path& file) {
  require_place_for_result(file, {"note", [](std::string_view start) { return start.starts_with("note"); }}, "--json");
}

class ResultOptionsTest : public testing::Test {
 protected:
  fs::path at(const std::string& name) const { return folder_.path() / name; }
  void touch(const std::string& name) const { write_file_atomically(at(name), std::string_view("note")); }

  // What is wrong with the words of a command line.
  static std::string refusal(const std::vector<std::string>& words) {
    fs::path model;
    std::vector<fs::path> pictures;
    fs::path data;
    fs::path json;
    fs::path table;
    CLI::App app;
    app.add_option("MODEL", model)->type_name("FILE");
    app.add_option("PICTURES", pictures)->type_name("FILE");
    app.add_option("--data", data)->type_name("FOLDER");
    add_result(app, "--json", json, require_place_for_note, "");
    add_result(app, "--table", table, require_place_for_note, "");
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
    return message_of(Failure::usage, [&] { require_places_for_results(app); });
  }

  static void expect_two_results(const std::string& message, const std::string& table, const std::string& json) {
    expect_message(message, {"'" + table + "' of --table", "'" + json + "' of --json"});
  }
  static void expect_input(const std::string& message, const std::string& json, const std::string& path,
                           const std::string& input) {
    expect_message(message, {"'" + json + "' of --json", "'" + path + "' of " + input});
  }

 private:
  TemporaryFolder folder_;
};

// evaluate --json a --predictions a ended with 0, and only one of them was there.
TEST_F(ResultOptionsTest, two_results_want_two_files_however_they_are_spelled) {
  fs::create_directory(at("folder"));
  fs::create_directory_symlink(at("folder"), at("link"));
  const std::string json = at("folder/a");
  for (const fs::path& table : {at("folder/a"), at("folder/./a"), at("folder/../folder/a"), at("link/a")}) {
    expect_two_results(refusal({"m", "--json", json, "--table", table}), table, json);
  }
  EXPECT_NE(refusal({"m", "--json=./absent", "--table", fs::current_path() / "absent"}).find("'./absent' of --json"),
            std::string::npos);
  EXPECT_EQ(refusal({"m", "--json", json, "--table", at("folder/b")}), "no error");
}

TEST_F(ResultOptionsTest, links_to_one_file_are_one_file) {
  touch("a");
  fs::create_symlink(at("a"), at("symbolic"));
  fs::create_hard_link(at("a"), at("hard"));
  for (const char* name : {"symbolic", "hard"}) {
    expect_two_results(refusal({"m", "--json", at("a"), "--table", at(name)}), at(name), at("a"));
  }
}

TEST_F(ResultOptionsTest, what_is_read_is_not_replaced) {
  touch("a");
  fs::create_symlink(at("a"), at("link"));
  expect_input(refusal({at("a"), "--json", at("link")}), at("link"), at("a"), "MODEL");
  expect_input(refusal({"m", "b", at("a"), "--json", at("a")}), at("a"), at("a"), "PICTURES");
  fs::create_directory(at("data"));
  expect_input(refusal({"m", "--data", at("data"), "--json", at("data")}), at("data"), at("data"), "--data");
}

TEST_F(ResultOptionsTest, each_place_is_looked_at) {
  touch("earlier");
  EXPECT_EQ(refusal({"m", "--json", at("earlier")}), "no error");
  expect_message(refusal({"m", "--json", ""}), {"--json"});
  fs::create_directory(at("folder"));
  expect_message(refusal({"m", "--json", at("folder")}), {"--json"});
  write_file_atomically(at("other"), std::string_view("thesis"));
  expect_message(refusal({"m", "--json", at("other")}), {"--json"});
}

}  // namespace lockstep::result_options_test
