#include "base/text/json_text.hpp"

#include <gtest/gtest.h>

#include <array>
#include <nlohmann/json.hpp>

#include "base/random.hpp"

namespace lockstep::json_text_test {

std::string json_string(std::string_view text, std::size_t room = 1000) {
  std::string out(room, 'x');
  out.resize(write_json_string(text, out));
  return out;
}

// dump() throws on a path in Latin-1.
TEST(JsonTextTest, bytes_that_are_not_utf8_become_the_replacement_character) {
  EXPECT_EQ(json_text({{"path", "/data/caf\xE9"}}), "{\"path\":\"/data/caf\uFFFD\"}");
  EXPECT_EQ(json_lines({{"b", 1}, {"a", "\xFF"}}), "{\n \"a\": \"\uFFFD\",\n \"b\": 1\n}");
}

TEST(JsonTextTest, a_string_is_escaped_as_json_wants_it) {
  EXPECT_EQ(json_string("a \"quoted\" \\ path\tand\na line \x1b[0m Ärmel \xE9"),
            "\"a \\\"quoted\\\" \\\\ path\\tand\\na line \\u001b[0m Ärmel \uFFFD\"");
}

TEST(JsonTextTest, any_bytes_become_the_string_that_nlohmann_writes) {
  for (std::uint64_t round = 0; round < 50'000; ++round) {
    std::string text;
    for (std::uint64_t i = 0; i < 1 + round % 9; ++i) {
      const auto draws = philox(5, i, round);
      constexpr std::array<unsigned, 8> leads = {0xC2, 0xE0, 0xED, 0xEF, 0xF0, 0xF4, 0x1F, 0x5C};
      text += static_cast<char>(draws[1] % 3 == 0   ? leads.at(draws[0] % 8)
                                : draws[1] % 3 == 1 ? 0x80 | draws[0]
                                                    : draws[0]);
    }
    ASSERT_EQ(json_string(text), json_text(text)) << round;
  }
}

TEST(JsonTextTest, what_does_not_fit_is_left_out_and_the_rest_is_a_string) {
  const std::string text = "ab\n猫\xFF\"\x01";
  const std::string whole = json_string(text);
  for (std::size_t room = 2; room <= whole.size() + 1; ++room) {
    const std::string cut = json_string(text, room);
    EXPECT_LE(cut.size(), room);
    const nlohmann::json read = nlohmann::json::parse(cut);
    EXPECT_TRUE(whole.starts_with(cut.substr(0, cut.size() - 1))) << read;
  }
  EXPECT_EQ(json_string(text, 2), "\"\"");
  EXPECT_EQ(json_string(text, whole.size()), whole);
}

}  // namespace lockstep::json_text_test
