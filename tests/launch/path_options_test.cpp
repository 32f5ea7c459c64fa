#include "launch/path_options.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "launch/parse.hpp"
#include "support/messages.hpp"

namespace lockstep {
namespace {

const std::vector<StatedPath> paths = {
    {"MODEL", "m.h5"}, {"--data", "data"}, {"--stage", "data/copies/"}, {"--plan-folder", ""}};

// "cannot read 'x'" did not tell which of the files it was.
TEST(PathOptionsTest, the_option_of_the_first_path_is_named) {
  EXPECT_EQ(with_option_of_path("cannot read 'm.h5': No such file.", paths),
            "cannot read 'm.h5' (MODEL): No such file.");
  EXPECT_EQ(with_option_of_path("'data' does not exist.", paths), "'data' (--data) does not exist.");
  EXPECT_EQ(with_option_of_path("'data/test/a.h5' is damaged.", paths), "'data/test/a.h5' (--data) is damaged.");
  EXPECT_EQ(with_option_of_path("'data/copies/a' and 'm.h5' differ.", paths),
            "'data/copies/a' (--stage) and 'm.h5' differ.");
}

// --output was blamed for what --resume named, since it stands before it in --help.
TEST(PathOptionsTest, of_options_with_one_path_the_one_that_fits_is_named) {
  const std::vector<StatedPath> equal = {{"--output", "odd"}, {"--resume", "odd", true}, {"--data", "odd"}};
  EXPECT_EQ(with_option_of_path("'odd' is a folder.", equal), "'odd' (--resume) is a folder.");
  EXPECT_EQ(with_option_of_path("'odd/train' is missing.", equal), "'odd/train' (--output) is missing.");
  EXPECT_EQ(with_option_of_path("'odd' is in use (--output).", equal), "'odd' is in use (--output).");
}

TEST(PathOptionsTest, other_messages_stay_as_they_are) {
  for (const char* message :
       {"out of memory", "cannot read '/other'", "cannot read 'data2'", "an apostrophe isn't a name",
        "'data' (--data) is empty.", "'data' is empty. Choose another --data.", "unknown model 'data' (--model)."}) {
    EXPECT_EQ(with_option_of_path(message, paths), message);
  }
}

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

}  // namespace
}  // namespace lockstep
