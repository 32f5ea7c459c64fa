#include "slurm/retry/retry_rules.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "support/message_of.hpp"
#include "support/messages.hpp"

namespace lockstep::retry_rules_test {

constexpr const char* example =
    "# ours\n\n"
    "transient code 17\r\n"
    "  transient  elsewhere\tlog   uncorrectable ECC error  \n"
    "permanent log (CUDA|cuBLAS) out of memory\n"
    "unknown code 3";

TEST(RetryRulesTest, reads_kinds_codes_and_patterns) {
  const RetryRules rules = parse_retry_rules(example, "rules");
  ASSERT_EQ(rules.size(), 4U);
  EXPECT_EQ(rules[0].kind, RetryKind::transient);
  EXPECT_EQ(rules[0].code, 17);
  EXPECT_EQ(rules[0].next, NextNodes::any);
  EXPECT_EQ(rules[1].next, NextNodes::others);
  EXPECT_EQ(rules[1].pattern, "uncorrectable ECC error");
  EXPECT_EQ(rules[2].kind, RetryKind::permanent);
}

TEST(RetryRulesTest, the_first_that_matches_counts) {
  const RetryRules rules = parse_retry_rules(example, "rules");
  EXPECT_EQ(first_match(rules, 17, "CUDA out of memory")->matched, "code 17");
  const std::optional<RuleMatch> match = first_match(rules, 1, "epoch 1\nRuntimeError: CUDA out of memory.\nbye\n");
  ASSERT_TRUE(match);
  EXPECT_EQ(match->matched, "RuntimeError: CUDA out of memory.");
  EXPECT_EQ(match->rule.kind, RetryKind::permanent);
  EXPECT_FALSE(first_match(rules, 1, "CUDA\nout of memory"));
  EXPECT_FALSE(first_match(rules, 1, ""));
}

TEST(RetryRulesTest, a_line_of_any_length_and_any_bytes_is_taken) {
  const RetryRules rules = parse_retry_rules("permanent log (a*)*b$", "rules");
  EXPECT_FALSE(first_match(rules, 1, std::string(1 << 16, 'a')));
  EXPECT_FALSE(first_match(rules, 1, std::string("\xff\xfe\0\x1b", 4)));
}

TEST(RetryRulesTest, a_mistake_is_named_with_its_line) {
  const auto message = [](const char* text) {
    return message_of(Failure::usage, [&] { parse_retry_rules(text, "my rules"); });
  };
  expect_message(message("\n\nsometimes code 3"),
                 {"line 3 of 'my rules'", "'sometimes'", "transient_conflict", "LOCKSTEP_RETRY_RULES"});
  expect_message(message("none code 3"), {"line 1 of 'my rules'", "'none'"});
  expect_message(message("transient code 0"), {"'0'", "255"});
  expect_message(message("transient code"), {"''", "255"});
  expect_message(message("transient 17"), {"KIND [elsewhere] code NUMBER", "KIND [elsewhere] log PATTERN"});
  expect_message(message("transient log"), {"KIND [elsewhere] log PATTERN"});
  expect_message(message("transient log ("), {"'('"});
}

TEST(RetryRulesTest, what_would_take_too_long_to_look_for_is_refused) {
  const auto message = [](const std::string& text) {
    return message_of(Failure::usage, [&] { parse_retry_rules(text, "my rules"); });
  };
  const auto is_taken = [](const std::string& pattern) {
    return parse_retry_rules("transient log " + pattern, "my rules").size() == 1;
  };
  expect_message(message("transient log " + std::string(201, 'a')), {"line 1 of 'my rules'", "201", "200"});
  EXPECT_TRUE(is_taken(std::string(200, 'a')));
  expect_message(message("transient log (a*)*\\1b"), {"line 1 of 'my rules'", "\\1"});
  EXPECT_TRUE(is_taken("a\\\\1"));
  for (const char* pattern : {"a{1001}", "a{1,1001}", "a{1001,}", "(a{32}){32}", "((a{10}){10}){11}", "[^]a]{1001}",
                              "((((a{255}){255}){255})", "(ab){501}", "[[:alpha:]]{1001}", "\\({1001}"}) {
    expect_message(message(std::string("transient log ") + pattern), {"line 1 of 'my rules'", "1000"});
  }
  for (const char* pattern : {"a{1000}", "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "(a|b){500}", "error \\{4040\\}",
                              "(a{10}){10}(b{10}){10}", "[{9999}]", "json \\{"}) {
    EXPECT_TRUE(is_taken(pattern)) << pattern;
  }
  std::string rules;
  for (int i = 0; i < 64; ++i) rules += "# of 64\ntransient log a\n";
  EXPECT_EQ(parse_retry_rules(rules, "my rules").size(), 64U);
  expect_message(message(rules + "transient log a\n"), {"line 129 of 'my rules'", "64"});
}

}  // namespace lockstep::retry_rules_test
