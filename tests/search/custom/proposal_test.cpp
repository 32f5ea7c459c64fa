#include "search/custom/proposal.hpp"

#include <gtest/gtest.h>

#include "base/text/json_text.hpp"
#include "support/messages.hpp"

namespace lockstep::proposal_test {

using nlohmann::json;
using Words = std::vector<OptionWord>;

Space example() {
  using Kind = Hyperparameter::Kind;
  Space space;
  space.hyperparameters = {{"lr", 1, Kind::logarithmic, {}, -3, -1},
                           {"momentum", 2, Kind::real, {}, 0.5, 0.9},
                           {"warmup", 3, Kind::integer, {}, 0, 5},
                           {"weight-decay", 4, Kind::listed, {"--weight-decay=1e-4", "--weight-decay=0.5"}},
                           {"nesterov", 5, Kind::listed, {"--nesterov", ""}},
                           {"global-batch", 6, Kind::listed, {"--global-batch=30"}}};
  return space;
}

json settings() {
  return {{"lr", 0.1}, {"momentum", 0.75}, {"warmup", 5}, {"weight-decay", "1e-4"}, {"nesterov", true}};
}

TEST(ProposalTest, hyperparameters_are_described_without_constants) {
  EXPECT_EQ(hyperparameters_json(example()), parse_json(R"({
    "lr": {"low": 0.001, "high": 0.1, "log": true, "int": false},
    "momentum": {"low": 0.5, "high": 0.9, "log": false, "int": false},
    "warmup": {"low": 0.0, "high": 5.0, "log": false, "int": true},
    "weight-decay": {"choices": ["1e-4", "0.5"]},
    "nesterov": {"choices": [true, false]}})"));
}

TEST(ProposalTest, settings_become_words_in_file_order) {
  EXPECT_EQ(proposed_words(example(), settings()), (Words{"--lr=0.1", "--momentum=0.75", "--warmup=5",
                                                          "--weight-decay=1e-4", "--nesterov", "--global-batch=30"}));
  json other = settings();
  other["warmup"] = 2.0;
  other.erase("weight-decay");
  other["weight_decay"] = 0.5;
  other["nesterov"] = false;
  other["lr"] = 0.10000000000000002;  // a rounded power
  EXPECT_EQ(proposed_words(example(), other),
            (Words{"--lr=0.1", "--momentum=0.75", "--warmup=2", "--weight-decay=0.5", "--global-batch=30"}));
}

TEST(ProposalTest, what_the_space_does_not_have_is_refused) {
  const auto expect_refused = [](Subjects subjects, const std::string& name, const json& value) {
    json changed = settings();
    changed[name] = value;
    expect_error(Failure::usage, subjects, [&] { proposed_words(example(), changed); });
  };
  expect_refused({"'lr'", "0.2"}, "lr", 0.2);
  expect_refused({"'lr'", "\"0.1\""}, "lr", "0.1");
  expect_refused({"'momentum'", "null"}, "momentum", nullptr);
  expect_refused({"'warmup'", "2.5", "whole"}, "warmup", 2.5);
  expect_refused({"'weight-decay'", "0.25"}, "weight-decay", "0.25");
  expect_refused({"'nesterov'", "\"on\""}, "nesterov", "on");
  expect_refused({"'global-batch'", "64"}, "global-batch", 64);
  expect_refused({"'$(reboot)'"}, "$(reboot)", 1);
  expect_refused({"'weight-decay'"}, "weight_decay", 0.001);  // and with a dash
  expect_error(Failure::usage, {"'lr'"}, [] { proposed_words(example(), json::object()); });
  expect_error(Failure::usage, {"'settings'"}, [] { proposed_words(example(), json::array()); });
}

}  // namespace lockstep::proposal_test
