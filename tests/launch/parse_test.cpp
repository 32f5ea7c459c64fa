// The words for a command line that is wrong: what a user meant is named.
#include "launch/parse.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "launch/field_options.hpp"
#include "support/messages.hpp"

namespace lockstep::parse_test {

std::string describe_names(const std::string& line, const std::function<void(CLI::App&)>& declare) {
  CLI::App app;
  declare(app);
  try {
    app.parse(line);
  } catch (const CLI::ParseError& error) {
    return usage_error_message(app, error);
  }
  return "";
}

std::string of_training(const std::string& line) {
  Settings settings;
  std::optional<ValidSettings> valid;
  return describe_names(line, [&](CLI::App& app) { declare_training(app, settings, valid); });
}

// A program with commands, which has none of a training's options.
std::string of_commands(const std::string& line) {
  return describe_names(line, [](CLI::App& app) {
    app.require_subcommand(1);
    app.add_subcommand("cifar10")->add_option("--source")->required();
    app.get_subcommand("cifar10")->add_option("--output");
    app.add_subcommand("images");
  });
}

void expect_meant(const std::string& message, const std::string& option, const std::string& names) {
  expect_message(message, {"'" + option + "'", names, "--help"});
}

TEST(ParseTest, words_of_other_programs_are_translated) {
  for (const auto& [foreign, own] :
       {std::pair("--batch-size", "--batch-per-rank or --global-batch"),
        std::pair("--batch_size", "--batch-per-rank or --global-batch"), std::pair("--workers", "--loader-threads"),
        std::pair("--num-workers", "--loader-threads"), std::pair("--amp", "--precision"),
        std::pair("--dist-backend", "--reduce"), std::pair("--backend", "--reduce"),
        std::pair("--max-epochs", "--epochs"), std::pair("--learning_rate", "--lr"),
        std::pair("--wd", "--weight-decay")}) {
    expect_meant(of_training("--data d " + std::string(foreign) + " 4"), foreign, own);
    expect_meant(of_training("--data d " + std::string(foreign) + "=4"), foreign, own);
  }
  Settings settings;
  EXPECT_EQ(of_training("--data d --model lenet --learning-rate 4"), "");
}

TEST(ParseTest, they_are_only_where_the_program_has_the_option) {
  expect_message(of_commands("cifar10 --source s --batch-size 4"), {"--batch-size"});
  expect_message(of_commands("cifar10 --source s --amp"), {"--amp"});
}

TEST(ParseTest, a_misspelt_option_gets_the_nearest_name) {
  expect_meant(of_training("--data d --epoch 3"), "--epoch", "--epochs");
  expect_meant(of_training("--data d --checkpoint_every 3"), "--checkpoint_every", "--checkpoint-every");
  expect_meant(of_training("--data d --gloabl-batch=3"), "--gloabl-batch", "--global-batch");
  expect_meant(of_training("--data d -epochs 3"), "-epochs", "--epochs");
  expect_message(of_training("--data d --quantum-leap 3"), {"--quantum-leap"});
  expect_message(of_training("--data d 3"), {"--help", "3"});
}

// --val-every was taken for --ema-every.
TEST(ParseTest, the_start_of_an_option_gets_its_name) {
  expect_meant(of_training("--data d --batch 3"), "--batch", "--batch-per-rank");
  expect_meant(of_training("--data d --out o"), "--out", "--output");
  expect_meant(of_training("--data d --val-every 3"), "--val-every", "--test-every");
}

// It was an unknown argument, and --help had to be read to see what it could be.
TEST(ParseTest, a_path_without_its_option_gets_the_first_option_that_takes_one) {
  expect_message(of_training("cifar10 --model lenet"), {"'cifar10'", "--data cifar10", "--help"});
  expect_message(of_commands("images cifar10"), {"'cifar10'", "--help"});
}

// "--data is required", where it was there but for a letter.
TEST(ParseTest, a_misspelt_option_is_told_before_what_is_missing) {
  expect_meant(of_training("--dta d"), "--dta", "--data");
  expect_meant(of_commands("cifar10 --sourc s"), "--sourc", "--source");
  expect_message(of_training(""), {"--data"});
}

TEST(ParseTest, a_misspelt_command_gets_the_nearest_name) {
  expect_message(of_commands("cifra10 --source s"), {"--help", "cifra10"});
  expect_message(of_commands("download"), {"--help", "download"});
  expect_message(of_commands(""), {"--help"});
  expect_message(of_commands("--hlep"), {"--help", "--hlep"});
}

// The folder was named as an unknown command.
TEST(ParseTest, an_option_without_a_command_is_told_that_the_command_is_missing) {
  expect_message(of_commands("--source s"), {"--source", "--help"});
  expect_message(of_commands("--source=s"), {"--source", "--help"});
}

TEST(ParseTest, an_option_before_its_command_is_told_where_it_belongs) {
  expect_message(of_commands("--output o cifar10 --source s"), {"--output", "cifar10"});
}

TEST(ParseTest, a_misspelt_value_gets_the_nearest_name) {
  expect_message(of_training("--data d --schedule cosin"), {"--schedule", "cosin"});
}

}  // namespace lockstep::parse_test
