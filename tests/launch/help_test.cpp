#include "launch/help.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "launch/field_options.hpp"
#include "launch/help_request.hpp"
#include "launch/parse.hpp"
#include "recipe/fields.hpp"
#include "support/messages.hpp"

namespace lockstep::help_test {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class HelpTest : public testing::Test {
 protected:
  HelpTest() {
    settings_.recipe.model = "resnet20";
    settings_.recipe.batch.global_batch = {128, ChosenBy::program};
    declare_program(app_, [this](CLI::App& app) {
      app.name("build/bin/train_cifar");
      app.description("Trains an image classifier.");
      app.footer("Examples:\n  train_cifar --data d");
      declare_training(app, settings_, valid_);
    });
  }

  std::string help_of(const std::vector<std::string>& groups) const { return help_text(app_, groups, 80); }

  CLI::App app_;
  Settings settings_;
  std::optional<ValidSettings> valid_;
};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::ptrdiff_t options_in(const std::string& help) {
  return std::ranges::count_if(lines_of(help), [](const std::string& line) {
    return line.starts_with("  --") && !line.starts_with("  --help") && !line.starts_with("  --version");
  });
}

TEST_F(HelpTest, common_options_are_few_and_lead_to_the_others) {
  const std::string help = help_of({});
  EXPECT_THAT(help, testing::StartsWith(
                        "Trains an image classifier.\n\nUsage: train_cifar [OPTIONS]\n\nThese are the common "));
  EXPECT_LE(options_in(help), 21);
  for (const char* option : {"--data FOLDER", "--model NAME", "--lr, --learning-rate RATE", "--output FOLDER"}) {
    EXPECT_THAT(help, HasSubstr(option));
  }
  EXPECT_THAT(help, Not(HasSubstr("--shuffle-window")));
  EXPECT_THAT(help, HasSubstr("--help-all lists all options, --help GROUP"));
  EXPECT_THAT(help, HasSubstr("\nExamples:\n  train_cifar --data d"));
}

TEST_F(HelpTest, all_options_are_in_a_group) {
  const std::string help = full_help_text(app_, 80);
  EXPECT_EQ(options_in(help), std::ssize(training_fields()) + 2);  // and --recipe, --print-recipe
  std::vector<std::string> headings;
  for (const OptionGroup& group : option_groups(app_)) headings.push_back(group.heading);
  EXPECT_THAT(headings, ElementsAre("Options", "Data", "Augmentation", "Model", "Optimizer", "Schedule",
                                    "Precision and device", "Distribution", "Output", "Checkpoints", "Monitoring"));
}

TEST_F(HelpTest, one_group_is_printed_by_its_first_word) {
  const std::string help = help_of({"precision"});
  EXPECT_THAT(help, testing::StartsWith("Precision and device:\n"));
  EXPECT_THAT(help, HasSubstr("--tf32, --no-tf32 "));
  EXPECT_THAT(help, Not(HasSubstr("--momentum")));
  EXPECT_EQ(help_of({"Precision"}), help);
  EXPECT_EQ(help_of({"device"}), help);
  expect_error(Failure::usage, {"--help", "optimiser"}, [this] { help_of({"optimiser"}); });
}

// Of --help model data, only the model's options were printed.
TEST_F(HelpTest, several_groups_are_printed_once_each) {
  EXPECT_EQ(help_of({"model", "data", "model"}), help_of({"data"}) + "\n\n" + help_of({"model"}));
  expect_error(Failure::usage, {"'optimiser'"}, [this] { help_of({"model", "optimiser"}); });
}

std::string request_in(const std::vector<std::string>& words) {
  const std::optional<HelpRequest> request = help_request(words);
  return request ? request_text(*request) : "none";
}

// Help was refused if the command line had a mistake.
TEST(HelpRequestTest, a_request_counts_wherever_it_is_on_the_line) {
  EXPECT_EQ(request_in({"--epochs", "x", "--help"}), "--help");
  EXPECT_EQ(request_in({"images", "-h", "--source"}), "--help");
  EXPECT_EQ(request_in({"images", "--version"}), "--version");
  EXPECT_EQ(request_in({"--version", "--help", "--help-all"}), "--help-all");
  EXPECT_EQ(request_in({"--version", "--help"}), "--help");
  EXPECT_EQ(request_in({"--dry-run", "--", "--help"}), "none");
  EXPECT_EQ(request_in({"--helper", "help"}), "none");
}

TEST(HelpRequestTest, the_words_after_help_are_groups_in_any_form) {
  EXPECT_EQ(request_in({"--help", "model", "data", "--epochs", "3", "-h", "output"}), "--help model data output");
  EXPECT_EQ(request_in({"--help=model,data"}), "--help model data");
  EXPECT_EQ(request_in({"--help="}), "--help");
}

TEST(HelpRequestTest, the_command_is_found_without_parsing) {
  CLI::App app;
  app.add_subcommand("images");
  app.add_subcommand("verify");
  EXPECT_EQ(command_in(app, std::vector<std::string>{"--help", "verify", "images"}).get_name(), "verify");
  EXPECT_EQ(&command_in(app, std::vector<std::string>{"--help", "picture"}), &app);
}

TEST_F(HelpTest, lines_are_as_wide_as_the_terminal) {
  for (const int columns : {40, 80, 100}) {
    const std::vector<std::string> lines = lines_of(full_help_text(app_, columns));
    const auto is_longer = [&](const std::string& line) {
      // A word that is longer than the line stands by itself.
      return std::ssize(line) > columns && line.find_last_of(' ') > 27;
    };
    const auto longest = std::ranges::find_if(lines, is_longer);
    EXPECT_EQ(longest, lines.end()) << columns << ": " << *longest;
  }
}

TEST_F(HelpTest, an_option_states_its_values_once_and_its_default) {
  const auto description = [this](const std::string& name) { return option_text(*app_.get_option(name)).description; };
  EXPECT_THAT(description("--optimizer"), testing::EndsWith(" (sgd, lars, adamw, muon; default: sgd)"));
  EXPECT_THAT(description("--shuffle"), testing::EndsWith("larger than memory (default: full)"));
  EXPECT_THAT(description("--bucket-mib"), testing::EndsWith("(from 0 to 1024; default: 4)"));
  EXPECT_THAT(description("--data"), testing::EndsWith("(required)"));
  EXPECT_THAT(description("--image-size"), testing::EndsWith("input (from 8 to 4096; default: from the data set)"));
  EXPECT_THAT(description("--seed"), testing::EndsWith("augmentation (0 or more; default: 0)"));
  EXPECT_THAT(description("--tf32"), Not(HasSubstr("default")));
  EXPECT_THAT(description("--time-limit"), Not(HasSubstr("a time")));
  EXPECT_EQ(option_text(*app_.get_option("--milestones")).value, "EPOCHS...");
}

TEST(HelpOfArgumentsTest, several_arguments_have_the_usual_form) {
  std::vector<std::string> folders;
  std::vector<std::string> files;
  CLI::App app;
  declare_program(app, [&](CLI::App& declared) {
    declared.name("report");
    declared.add_option("RUN_FOLDER", folders, "Folders of trainings")->required()->expected(1, 16);
    declared.add_option("FILE", files);
  });
  const std::string help = help_text(app, {}, 80);
  EXPECT_THAT(help, HasSubstr("Usage: report [OPTIONS] RUN_FOLDER... [FILE...]\n"));
  EXPECT_THAT(help, HasSubstr("\nArguments:\n  RUN_FOLDER...            Folders of trainings\n"));
  // A word after --help may be an argument.
  EXPECT_EQ(help_text(app, std::vector<std::string>{"runs/r20"}, 80), help);
  EXPECT_THAT(help_text(app, std::vector<std::string>{"runs/r20", "options"}, 80), testing::StartsWith("Options:\n"));
}

}  // namespace lockstep::help_test
