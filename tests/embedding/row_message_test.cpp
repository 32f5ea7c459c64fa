#include "embedding/row_message.hpp"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "support/messages.hpp"

namespace lockstep::row_message_test {

using testing::ElementsAre;

std::string of(const std::vector<std::int64_t>& numbers) {
  std::string message;
  append_numbers<std::int64_t>(message, numbers);
  return message;
}
constexpr RowRange held{100, 50};

TEST(RowMessageTest, numbers_are_taken_from_the_front) {
  std::string text = of({2, 149, 100});
  append_numbers<float>(text, std::vector<float>{0.5F, -1});
  RowMessage message{text, 3};
  EXPECT_THAT(message.take_rows(held), ElementsAre(149, 100));
  EXPECT_THAT(message.take<float>(2), ElementsAre(0.5F, -1));
  message.end();
}

TEST(RowMessageTest, rows_that_this_rank_does_not_hold_are_refused) {
  for (const std::int64_t row : {std::int64_t{99}, std::int64_t{150}, std::int64_t{-1}, std::int64_t{1} << 62}) {
    const std::string text = of({2, 100, row});
    RowMessage message{text, 3};
    expect_error(Failure::other, {"rank 3", "row " + std::to_string(row), "50 rows from row 100"},
                 [&] { message.take_rows(held); });
  }
}

TEST(RowMessageTest, wrong_lengths_are_refused) {
  for (const std::string& text :
       {of({3, 100, 101}), of({-1}), of({std::int64_t{1} << 61}), std::string(), of({1}) + "abc"}) {
    RowMessage message{text, 3};
    expect_error(Failure::other, {"rank 3", "too short"}, [&] { message.take_rows(held); });
  }
  const std::string text = of({1, 100, 7});
  RowMessage message{text, 3};
  message.take_rows(held);
  expect_error(Failure::other, {"rank 3", "8 bytes too long"}, [&] { message.end(); });
}

}  // namespace lockstep::row_message_test
