#include "slurm/submit/yaml.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string_view>

#include "support/message_of.hpp"
#include "support/messages.hpp"
#include "support/mutation.hpp"

namespace lockstep::yaml_test {

using testing::AllOf;
using testing::HasSubstr;

std::string refusal_of(const std::string& text) {
  return message_of(Failure::usage, [&] { parse_yaml(text, "job.yaml"); });
}

TEST(YamlTest, values_know_their_lines) {
  const YamlValue root = parse_yaml("a: 1\nb:\n  - x\n  - 'null'\n  - null\nc: {d: \"e\"}\n", "job.yaml");
  ASSERT_EQ(root.kind, YamlValue::Kind::map);
  ASSERT_NE(root.find("b"), nullptr);
  const YamlValue& list = root.find("b")->value;
  ASSERT_EQ(list.items.size(), 3U);
  EXPECT_EQ(list.items[0].line, 3);
  EXPECT_EQ(list.items[1].text, "null");
  EXPECT_EQ(list.items[1].kind, YamlValue::Kind::text) << "a text in quotes is a text";
  EXPECT_EQ(list.items[2].kind, YamlValue::Kind::nothing);
  EXPECT_EQ(root.find("c")->line, 6);
  EXPECT_EQ(root.find("c")->value.find("d")->value.text, "e");
  EXPECT_EQ(root.find("nobody"), nullptr);
}

TEST(YamlTest, an_alias_is_a_copy) {
  const YamlValue root = parse_yaml("a: &one {x: 1}\nb: *one\n", "job.yaml");
  EXPECT_EQ(root.find("b")->value.find("x")->value.text, "1");
}

TEST(YamlTest, what_is_no_yaml_is_refused_with_its_line) {
  expect_message(refusal_of("a: 1\nb: [1, 2\nc: 3\n"), {"'job.yaml', line "});
  expect_message(refusal_of(""), {"job.yaml"});
  expect_message(refusal_of("a: 1\n---\nb: 2\n"), {"job.yaml"});
  expect_message(refusal_of("a: 1\nb: 2\na: 3\n"), {"job.yaml", "a"});
  expect_message(refusal_of("a: 1\n[1]: 2\n"), {"job.yaml"});
  expect_message(refusal_of("a: !python/object:os.system x\n"), {"job.yaml", "!..."});
  expect_message(refusal_of("a: \"x\\0y\"\n"), {"job.yaml"});
  expect_message(refusal_of("a: \"\xff\"\n"), {"job.yaml"});
  // In yaml-cpp's own words, which differ between its versions.
  EXPECT_THAT(refusal_of("a: *nobody\n"), AllOf(HasSubstr("'job.yaml', line 1: "), HasSubstr("anchor")));
}

TEST(YamlTest, size_depth_and_what_aliases_amount_to_are_bounded) {
  expect_message(refusal_of(std::string(yaml_limits::bytes + 1, ' ')), {"job.yaml", "262144"});
  expect_message(refusal_of("a: " + std::string(17, '[') + std::string(17, ']')), {"'job.yaml', line 1", "16"});
  expect_message(refusal_of("a: " + std::string(200'000, '[')), {"'job.yaml', line 1", "16"});
  std::string laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int level = 1; level < 12; ++level) {
    const std::string before = "*a" + std::to_string(level - 1);
    laughs += "a" + std::to_string(level) + ": &a" + std::to_string(level) + " [";
    for (int i = 0; i < 10; ++i) laughs += (i == 0 ? "" : ", ") + before;
    laughs += "]\n";
  }
  expect_message(refusal_of(laughs), {"'job.yaml', line ", "10000"});
  expect_message(refusal_of("a: &a [*a]\n"), {"'job.yaml', line 1", "alias"});
  std::string list = "a:\n";
  for (int i = 0; i < 10'001; ++i) list += "- x\n";
  expect_message(refusal_of(list), {"'job.yaml', line ", "10000"});
}

// Bytes that are changed seldom make another structure; pieces of one do. LOCKSTEP_MUTATIONS asks for more rounds.
std::string text_of_pieces(std::uint64_t round) {
  constexpr std::array<std::string_view, 36> pieces = {
      "a: ",   "b",     "- ",  "? ",   ": ", "\n",   "\n  ", "\n    ",       "\t",       "[",  "]",    "{",   "}",
      ", ",    "&x ",   "*x",  "!t ",  "!",  "|\n",  ">-\n", "|9\n",         "'",        "\"", "\\x4", "\\u", "# c\n",
      "---\n", "...\n", "%Y ", "<<: ", "~",  "null", "0x1",  "\xef\xbb\xbf", "\xff\xfe", "\r"};
  std::string text;
  const std::uint32_t count = 1 + philox(12, 0, round)[0] % 40;
  for (std::uint32_t at = 1; at <= count; ++at) text += pieces.at(philox(12, at, round)[0] % pieces.size());
  return text;
}

TEST(YamlTest, pieces_in_any_order_are_a_tree_or_a_refusal) {
  const std::uint64_t rounds = mutation_rounds(5'000);
  std::uint64_t trees = 0;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    try {
      parse_yaml(text_of_pieces(round), "job.yaml");
      ++trees;
    } catch (const Error& error) {
      ASSERT_EQ(error.failure(), Failure::usage) << error.what();
    }
  }
  EXPECT_GT(trees, rounds / 100);
}

}  // namespace lockstep::yaml_test
