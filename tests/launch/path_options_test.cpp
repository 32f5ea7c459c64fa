#include "launch/path_options.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "launch/parse.hpp"
#include "support/messages.hpp"

namespace lockstep::path_options_test {

struct Parsed {
  std::string refusal;
  std::vector<std::string> stated;  // "--output=o"
};

Parsed parse(std::vector<std::string> words) {
  std::string text;
  CLI::App app;
  declare_program(app, [&](CLI::App& declared) {
    CLI::App* const command = declared.add_subcommand("images");
    command->add_option("--output", text)->type_name("DIR");
    command->add_option("--name", text);
    command->add_option("--resume", text)->type_name("auto|FILE");
    command->add_option("FILES", text)->type_name("FILE");
    command->add_option("--may-be-empty", text)
        ->type_name("FOLDER")
        ->check(CLI::Validator([](const std::string&) { return std::string(); }, ""));
  });
  std::vector<std::string> reversed(words.rbegin(), words.rend());
  try {
    app.parse(reversed);
  } catch (const CLI::ParseError& error) {
    return {error.what(), {}};
  }
  Parsed parsed;
  for (const StatedPath& one : stated_paths(app))
    parsed.stated.push_back(one.option + (one.is_file ? "=file:" : "=") + one.path.string());
  return parsed;
}

TEST(PathOptionsTest, paths_are_found_by_the_type_of_their_option) {
  EXPECT_EQ(parse({"images", "a.jpg", "--output", "o", "--name", "n", "--resume", "r"}).stated,
            (std::vector<std::string>{"--output=o", "--resume=file:r", "FILES=file:a.jpg"}));
}

// make_shards --output '' ended with 1.
TEST(PathOptionsTest, an_empty_name_is_a_usage_error_unless_the_option_has_a_check) {
  expect_message(parse({"images", "--output", ""}).refusal, {"--output", "''"});
  expect_message(parse({"images", ""}).refusal, {"FILES", "''"});
  EXPECT_EQ(parse({"images", "--name", "", "--may-be-empty", ""}).refusal, "");
}

}  // namespace lockstep::path_options_test
