#include "base/net/link_seal.hpp"

#include <gtest/gtest.h>

#include <set>

#include "base/error.hpp"
#include "support/messages.hpp"

namespace lockstep::link_seal_test {

using Side = LinkSeal::Side;

class LinkSealTest : public testing::Test {
 protected:
  const std::string token_ = draw_secret();
  const std::string challenge_0_ = draw_secret();
  const std::string challenge_1_ = draw_secret();
  LinkSeal listener_{token_, challenge_0_, challenge_1_, Side::listener};
  LinkSeal caller_{token_, challenge_0_, challenge_1_, Side::caller};
};

TEST(DrawSecret, draws_another_one_each_time) {
  std::set<std::string> drawn;
  for (int i = 0; i < 100; ++i) drawn.insert(draw_secret());
  EXPECT_EQ(drawn.size(), 100U);
  for (const std::string& text : drawn) EXPECT_TRUE(is_secret_text(text)) << text;
}

TEST(DrawSecret, only_digits_and_only_so_many_are_one) {
  EXPECT_TRUE(is_secret_text(std::string(64, '0')));
  EXPECT_FALSE(is_secret_text(std::string(63, '0')));
  EXPECT_FALSE(is_secret_text(std::string(66, '0')));
  EXPECT_FALSE(is_secret_text(std::string(63, '0') + "g"));
  EXPECT_FALSE(is_secret_text(std::string(63, '0') + '\0'));
  EXPECT_FALSE(is_secret_text(""));
}

TEST_F(LinkSealTest, lines_are_believed_in_the_order_in_which_they_were_sealed) {
  EXPECT_EQ(caller_.unseal(listener_.seal("one")), "one");
  EXPECT_EQ(listener_.unseal(caller_.seal("two")), "two");
  EXPECT_EQ(listener_.unseal(caller_.seal("")), "");
  EXPECT_EQ(listener_.unseal(caller_.seal("with spaces and \"marks\"")), "with spaces and \"marks\"");
  const std::string first = listener_.seal("a");
  const std::string second = listener_.seal("b");
  EXPECT_EQ(caller_.unseal(second), std::nullopt) << "one is left out";
  EXPECT_EQ(caller_.unseal(first), "a");
  EXPECT_EQ(caller_.unseal(first), std::nullopt) << "said twice";
  EXPECT_EQ(caller_.unseal(second), "b");
}

TEST_F(LinkSealTest, what_is_sent_back_is_not_believed) {
  EXPECT_EQ(listener_.unseal(listener_.seal("bye")), std::nullopt);
}

TEST_F(LinkSealTest, what_was_changed_is_not_believed_wherever) {
  const std::string line = listener_.seal("views");
  for (std::size_t i = 0; i < line.size(); ++i) {
    std::string changed = line;
    changed[i] ^= 1;
    EXPECT_EQ(caller_.unseal(changed), std::nullopt) << i;
  }
  for (std::size_t length = 0; length < line.size(); ++length) {
    EXPECT_EQ(caller_.unseal(line.substr(0, length)), std::nullopt) << length;
  }
  EXPECT_EQ(caller_.unseal(line + "x"), std::nullopt);
  EXPECT_EQ(caller_.unseal(line), "views");
}

TEST_F(LinkSealTest, who_has_another_token_or_heard_another_challenge_is_not_believed) {
  const std::string line = listener_.seal("x");
  EXPECT_EQ(LinkSeal(draw_secret(), challenge_0_, challenge_1_, Side::caller).unseal(line), std::nullopt);
  EXPECT_EQ(LinkSeal(token_, draw_secret(), challenge_1_, Side::caller).unseal(line), std::nullopt);
  EXPECT_EQ(LinkSeal(token_, challenge_0_, draw_secret(), Side::caller).unseal(line), std::nullopt);
  EXPECT_EQ(LinkSeal(token_, challenge_1_, challenge_0_, Side::caller).unseal(line), std::nullopt);
}

TEST_F(LinkSealTest, a_line_shows_neither_token_nor_key) {
  const std::string line = listener_.seal("text");
  EXPECT_EQ(line.find(token_), std::string::npos);
  EXPECT_EQ(line.size(), LinkSeal::added_length + 4);
}

TEST_F(LinkSealTest, without_a_token_nothing_is_sealed) {
  try {
    const LinkSeal seal("", challenge_0_, challenge_1_, Side::caller);
    FAIL() << "a seal without a token";
  } catch (const Error& error) {
    expect_message(error.what(), {"token"});
  }
}

}  // namespace lockstep::link_seal_test
