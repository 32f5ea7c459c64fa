#include "recommendation/movielens.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>

#include "base/io/file.hpp"
#include "support/messages.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::movielens_test {

using testing::ElementsAre;

// Both forms, with the same two users, three movies and 25 ratings.
class MovielensTest : public testing::Test {
 protected:
  MovielensTest() {
    write("colons/users.dat", "1::F::1::10::48067\n2::M::56::16::70072\n");
    write("colons/movies.dat",
          "1::Toy Story (1995)::Animation|Children's|Comedy\n3::2001: A Space Odyssey (1968)::Sci-Fi\n"
          "7::No Year (Extended)::Comedy\n");
    write("tabs/u.user", "1|14|F|technician|85711\n2|99|M|other|94043\n");
    const std::string no_genres = "|0|0|0|0|0|0|0|0|0|0|0|0|0|0|0|0|0|0|0\n";
    std::string toy_story = no_genres;
    toy_story[7] = '1';  // Animation, the fourth genre
    write("tabs/u.item", "1|Toy Story (1995)|01-Jan-1995||http://x" + toy_story +
                             "3|2001: A Space Odyssey (1968)|01-Jan-1968||" + no_genres +
                             "7|No Year (Extended)||||0|0|0|0|0|0|0|0|0|0|0|0|0|0|0|0|0|0|1\n");
    std::string colons;
    std::string tabs;
    for (int i = 0; i < 25; ++i) {
      const int movie = i % 3 == 0 ? 1 : i % 3 == 1 ? 3 : 7;
      colons += fmt::format("{}::{}::{}::{}\n", i < 20 ? 1 : 2, movie, 1 + i % 5, 978300760 + i);
      tabs += fmt::format("{}\t{}\t{}\t{}\n", i < 20 ? 1 : 2, movie, 1 + i % 5, 978300760 + i);
    }
    write("colons/ratings.dat", colons);
    write("tabs/u.data", tabs);
  }

  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((folder_.path() / name).parent_path());
    write_file_atomically(folder_.path() / name, text);
  }
  void append(const std::string& name, const std::string& text) const {
    write(name, read_file(folder_.path() / name, 1 << 20) + text);
  }
  RatingData read(const std::string& form, std::uint64_t seed = 1) const {
    return read_movielens(folder_.path() / form, seed);
  }
  void expect_foreign(const std::string& form, Subjects subjects,
                      const std::source_location& where = std::source_location::current()) const {
    expect_error(
        Failure::bad_data, subjects, [&] { read(form); }, where);
  }

  TemporaryFolder folder_;
};

TEST_F(MovielensTest, reads_the_form_with_colons) {
  const RatingData data = read("colons");
  EXPECT_EQ(data.name, "movielens-1m");
  EXPECT_THAT(data.catalogue.gender, ElementsAre(0, 0, 1));
  EXPECT_THAT(data.catalogue.age, ElementsAre(0, 0, 6));
  EXPECT_THAT(data.catalogue.occupation, ElementsAre(0, 10, 16));
  EXPECT_THAT(data.catalogue.titles,
              ElementsAre("", "Toy Story", "", "2001: A Space Odyssey", "", "", "", "No Year (Extended)"));
  ASSERT_EQ(data.catalogue.genre_count, 4);
  const std::vector<float>& genres = data.catalogue.genres;
  EXPECT_THAT(std::vector<float>(genres.begin() + 4, genres.begin() + 8), ElementsAre(1, 1, 1, 0));
  EXPECT_THAT(std::vector<float>(genres.begin() + 12, genres.begin() + 16), ElementsAre(0, 0, 0, 1));
  EXPECT_THAT(std::vector<float>(genres.end() - 4, genres.end()), ElementsAre(0, 0, 1, 0));
}

TEST_F(MovielensTest, reads_the_form_with_tabs) {
  const RatingData data = read("tabs");
  EXPECT_EQ(data.name, "movielens-100k");
  EXPECT_THAT(data.catalogue.gender, ElementsAre(0, 0, 1));
  EXPECT_THAT(data.catalogue.age, ElementsAre(0, 0, 6)) << "14 belongs to the group from 1, 99 to that from 56";
  EXPECT_THAT(data.catalogue.occupation, ElementsAre(0, 0, 1));
  EXPECT_EQ(data.catalogue.titles, read("colons").catalogue.titles);
  ASSERT_EQ(data.catalogue.genre_count, 19);
  EXPECT_EQ(data.catalogue.genres[19 + 3], 1);
  EXPECT_EQ(std::ranges::count(data.catalogue.genres, 1.0F), 2);
}

TEST_F(MovielensTest, a_tenth_of_each_users_ratings_is_for_the_test) {
  const RatingData data = read("colons");
  EXPECT_EQ(data.train.size(), 23U);
  EXPECT_EQ(data.test.size(), 2U) << "two of user 1's twenty, none of user 2's five";
  for (const Rating& rating : data.test) EXPECT_EQ(rating.user, 1);
  EXPECT_EQ(read("tabs").test, data.test) << "both forms have the same ratings";
  EXPECT_EQ(read("colons").test, data.test);
  const auto differs = [&](std::uint64_t seed) { return read("colons", seed).test != data.test; };
  EXPECT_TRUE(differs(2) || differs(3));
  std::map<float, int> stars;
  for (const auto* split : {&data.train, &data.test}) {
    for (const Rating& rating : *split) ++stars[rating.stars];
  }
  EXPECT_EQ(stars, (std::map<float, int>{{1, 5}, {2, 5}, {3, 5}, {4, 5}, {5, 5}}));
}

TEST_F(MovielensTest, names_the_file_and_the_foreign_line) {
  append("colons/ratings.dat", "1::1::6::978300760\n");
  expect_foreign("colons", {"line 26", "ratings.dat", "'6'", "1::1::6"});
  write("colons/ratings.dat", "1::1::5::1\nUserID,MovieID\n");
  expect_foreign("colons", {"line 2", "ratings.dat", "fields is 1", "UserID::MovieID::Rating::Timestamp"});
  write("colons/ratings.dat", "3::1::5::1\n");
  expect_foreign("colons", {"line 1", "'users.dat' does not list its user"});
  write("colons/ratings.dat", "2::2::5::1\n");
  expect_foreign("colons", {"line 1", "'movies.dat' does not list its movie"});
  append("tabs/u.data", "1\t1\n");
  expect_foreign("tabs", {"line 26", "u.data", "fields is 2"});
}

TEST_F(MovielensTest, names_foreign_lines_of_users_and_movies) {
  append("colons/users.dat", "3::X::1::0::1\n");
  expect_foreign("colons", {"line 3", "users.dat", "neither F nor M"});
  write("colons/users.dat", "1::F::1::21::1\n");
  expect_foreign("colons", {"line 1", "users.dat", "'21'"});
  write("colons/users.dat", "1::F::1::0::1\n1::F::1::0::1\n");
  expect_foreign("colons", {"line 2", "users.dat", "same user"});
  append("tabs/u.item", "9|Title\n");
  expect_foreign("tabs", {"line 4", "u.item", "fields is 2"});
  write("tabs/u.item", "1048576|Title||||0|0|0|0|0|0|0|0|0|0|0|0|0|0|0|0|0|0|1\n");
  expect_foreign("tabs", {"line 1", "u.item", "'1048576'"});
}

TEST_F(MovielensTest, a_folder_without_ratings_is_refused) {
  expect_error(Failure::usage, {"'ratings.dat'", "'u.data'", "--source"}, [&] { read_movielens(folder_.path(), 1); });
}

}  // namespace lockstep::movielens_test
