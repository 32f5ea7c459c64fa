#include "search/journal/journal.hpp"

#include <gtest/gtest.h>

#include "base/io/file.hpp"
#include "support/messages.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::journal_test {

class JournalTest : public testing::Test {
 protected:
  std::filesystem::path file() const { return folder_.path() / "search.jsonl"; }
  void write(std::string_view text) const { write_file_atomically(file(), text); }
  std::string text() const { return read_file(file(), 1 << 20); }

  TemporaryFolder folder_;
};

TEST_F(JournalTest, keeps_lines_in_order) {
  {
    Journal journal(file());
    EXPECT_TRUE(journal.lines().empty());
    EXPECT_FALSE(std::filesystem::exists(file())) << "the first line creates it";
    journal.append({{"trial", 1}});
    journal.append({{"trial", 2}});
  }
  Journal again(file());
  ASSERT_EQ(again.lines().size(), 2U);
  EXPECT_EQ(again.lines()[1]["trial"], 2);
  again.append({{"trial", 3}});
  EXPECT_EQ(text(), "{\"trial\":1}\n{\"trial\":2}\n{\"trial\":3}\n");
}

TEST_F(JournalTest, drops_a_damaged_last_line) {
  for (const std::string_view damage : {"{\"trial\":2", "{\"trial\":2}", "{\"tri\n", "\n", "3\n"}) {
    write("{\"trial\":1}\n" + std::string(damage));
    Journal journal(file());
    EXPECT_EQ(journal.lines().size(), 1U) << damage;
    journal.append({{"trial", 9}});
    EXPECT_EQ(text(), "{\"trial\":1}\n{\"trial\":9}\n") << damage;
  }
}

TEST_F(JournalTest, refuses_damage_before_the_last_line) {
  write("{\"trial\":1}\nx\n{\"trial\":3}\n");
  expect_error(Failure::bad_data, {"line 2", "search.jsonl"}, [&] { const Journal journal(file()); });
  EXPECT_EQ(text(), "{\"trial\":1}\nx\n{\"trial\":3}\n");
}

TEST_F(JournalTest, reads_what_others_have_added) {
  write("{\"trial\":0}\n");
  Journal one(file());
  Journal other(file());
  one.append({{"trial", 1}});
  EXPECT_FALSE(one.has_changed());
  EXPECT_TRUE(other.has_changed());
  EXPECT_EQ(other.read_new(), (std::vector<nlohmann::json>{{{"trial", 1}}}));
  EXPECT_EQ(other.read_new(), std::vector<nlohmann::json>{});
  other.append({{"trial", 2}});
  write(text() + "{\"tri");
  EXPECT_EQ(Journal(file()).lines().size(), 3U);
}

TEST_F(JournalTest, overwrites_no_line_of_another_process) {
  write("{\"trial\":0}\n");
  Journal one(file());
  Journal other(file());
  one.append({{"trial", 1}});
  expect_error(Failure::out_of_step, {"search.jsonl"}, [&] { other.append({{"trial", 2}}); });
  EXPECT_EQ(text(), "{\"trial\":0}\n{\"trial\":1}\n") << "nothing is written behind it";
}

TEST_F(JournalTest, a_line_counts_if_its_number_is_the_next_one) {
  EXPECT_TRUE(is_next_line(file(), {{"trial", 1}}, 2)) << "of a search that was not shared";
  EXPECT_TRUE(is_next_line(file(), {{"line", 3}}, 2));
  for (const int number : {0, 1, 2}) EXPECT_FALSE(is_next_line(file(), {{"line", number}}, 2));
  for (const nlohmann::json& number : {nlohmann::json("x"), nlohmann::json(), nlohmann::json(1.5), nlohmann::json(-1),
                                       nlohmann::json(4), nlohmann::json("3")}) {
    expect_error(Failure::bad_data, {"search.jsonl"}, [&] { is_next_line(file(), {{"line", number}}, 2); });
  }
}

TEST_F(JournalTest, follows_no_link) {
  write_file_atomically(folder_.path() / "other", "{}\n");
  std::filesystem::create_symlink("other", file());
  EXPECT_THROW(const Journal journal(file()), std::exception);
}

}  // namespace lockstep::journal_test
