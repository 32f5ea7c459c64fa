#include "base/text/table_cell.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace lockstep::table_cell_test {

std::string csv(std::string_view text) { return text_cell(text, TableFormat::csv); }

// A spreadsheet computed what a class or a file was named.
TEST(TableCellTest, no_name_is_a_formula) {
  EXPECT_EQ(csv("=HYPERLINK(\"x\")"), "\"'=HYPERLINK(\"\"x\"\")\"");
  EXPECT_EQ(csv("+1"), "'+1");
  EXPECT_EQ(csv("-cat"), "'-cat");
  EXPECT_EQ(csv("@SUM"), "'@SUM");
  EXPECT_EQ(csv("\t=1"), "\\x09=1");
  EXPECT_EQ(csv("\r=1"), "\\x0d=1");
  EXPECT_EQ(text_cell("=1", TableFormat::tsv), "'=1");
}

TEST(TableCellTest, different_names_have_different_cells) {
  const std::set<std::string> names = {"=1",     "'=1",      "''=1", "'",     "",  "a\n",
                                       "a\\x0a", "a\\\\x0a", "\xFF", "\\xff", "-", "'-"};
  for (const TableFormat format : {TableFormat::csv, TableFormat::tsv}) {
    std::set<std::string> cells;
    for (const std::string& name : names) cells.insert(text_cell(name, format));
    EXPECT_EQ(cells.size(), names.size());
  }
}

TEST(TableCellTest, usual_names_stay_as_they_are) {
  for (const char* name : {"cat", "Ärmel", "a-b=c@d+e", "n01440764", " spaced ", "it's"}) EXPECT_EQ(csv(name), name);
  EXPECT_EQ(csv("dog, small"), "\"dog, small\"");
  EXPECT_EQ(text_cell("dog, small", TableFormat::tsv), "dog, small");
}

}  // namespace lockstep::table_cell_test
