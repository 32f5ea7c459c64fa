#include "base/text/text_table.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lockstep::text_table_test {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(TextTableTest, columns_are_as_wide_as_their_cells_and_titles) {
  EXPECT_THAT(text_table({{"trial", {"1", "12"}}, {"state", {"in full", "-"}, true}, {"lr", {"0.1", "0.002"}}}, 80),
              ElementsAre("trial  state       lr", "    1  in full    0.1", "   12  -        0.002"));
}

TEST(TextTableTest, titles_are_broken_at_dashes_if_the_table_would_be_too_wide) {
  const std::vector<TextColumn> columns{{"weight-decay", {"5e-4"}}, {"n", {"1"}}, {"lr-batch", {"12345678"}}};
  EXPECT_THAT(text_table(columns, 25), ElementsAre("weight-decay  n  lr-batch", "        5e-4  1  12345678"));
  EXPECT_THAT(text_table(columns, 24), ElementsAre("weight-", "  decay  n  lr-batch", "   5e-4  1  12345678"));
}

TEST(TextTableTest, a_broken_title_keeps_together_what_its_cells_leave_room_for) {
  EXPECT_THAT(text_table({{"a-b-long", {"12345"}}}, 5), ElementsAre(" a-b-", " long", "12345"));
}

TEST(TextTableTest, characters_of_several_bytes_count_once) {
  EXPECT_THAT(text_table({{"größe", {"ä", "abcdef"}}, {"b", {"1", "2"}}}, 80),
              ElementsAre(" größe  b", "     ä  1", "abcdef  2"));
}

TEST(TextTableTest, a_row_has_a_cell_for_each_column) {
  std::vector<TextColumn> columns{{"a"}, {"b"}};
  add_row(columns, {"1", "22"});
  add_row(columns, {"3", "4"});
  EXPECT_THAT(text_table(columns, 80), ElementsAre("a   b", "1  22", "3   4"));
}

TEST(TextTableTest, lines_end_without_blanks) {
  EXPECT_THAT(text_table({{"a", {"1"}}, {"note", {""}, true}}, 80), ElementsAre("a  note", "1"));
}

TEST(TextTableTest, a_table_without_columns_or_rows_has_no_lines_for_them) {
  EXPECT_THAT(text_table({}, 80), IsEmpty());
  EXPECT_THAT(text_table({{"a", {}}, {"b", {}}}, 80), ElementsAre("a  b"));
}

}  // namespace lockstep::text_table_test
