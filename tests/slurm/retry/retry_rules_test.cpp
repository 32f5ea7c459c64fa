#include "slurm/retry/retry_rules.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "support/words_of.hpp"

namespace lockstep {
namespace {

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
  const auto words = [](const char* text) {
    return words_of(Failure::usage, [&] { parse_retry_rules(text, "my rules"); });
  };
  EXPECT_EQ(words("\n\nsometimes code 3"),
            "line 3 of 'my rules': 'sometimes' is no kind. Known: transient, transient_conflict, unknown, permanent "
            "(LOCKSTEP_RETRY_RULES). Correct it.");
  EXPECT_NE(words("none code 3").find("'none' is no kind"), std::string::npos);
  EXPECT_NE(words("transient code 0").find("'0' is no whole number from 1 to 255"), std::string::npos);
  EXPECT_NE(words("transient code").find("'' is no whole number"), std::string::npos);
  EXPECT_NE(words("transient 17").find("a rule is KIND [elsewhere] code NUMBER, or KIND [elsewhere] log PATTERN"),
            std::string::npos);
  EXPECT_NE(words("transient log").find("a rule is"), std::string::npos);
  EXPECT_NE(words("transient log (").find("'(' is no pattern: "), std::string::npos);
}

}  // namespace
}  // namespace lockstep
