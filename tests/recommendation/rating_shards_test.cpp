#include "recommendation/rating_shards.hpp"

#include <gmock/gmock.h>

#include <algorithm>

#include "base/io/file.hpp"
#include "recommendation/rating_pairs.hpp"
#include "support/messages.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::rating_shards_test {

class RatingShardsTest : public testing::Test {
 protected:
  std::filesystem::path shards() const { return folder_.path() / "shards"; }
  void damage(const std::string& name) const {
    std::string image = read_file(shards() / name, 1 << 24);
    image[image.size() / 2] ^= 1;
    write_file_atomically(shards() / name, image);
  }

  TemporaryFolder folder_;
  RatingData data_ = make_synthetic_ratings({.users = 30, .movies = 20, .ratings = 500});
};

TEST_F(RatingShardsTest, are_read_as_they_were_written) {
  data_.catalogue.titles[3] = "";
  data_.catalogue.titles.back() = "";
  data_.catalogue.titles[4] = "M\xE9lange";  // Latin-1, as in MovieLens
  write_rating_shards(shards(), data_, 200);
  EXPECT_TRUE(std::filesystem::exists(shards() / "train-00002.h5"));
  EXPECT_FALSE(std::filesystem::exists(shards() / "train-00003.h5")) << "450 ratings in shards of 200";
  const RatingData read = read_rating_shards(shards());
  EXPECT_EQ(read.name, "synthetic");
  EXPECT_EQ(read.train, data_.train);
  EXPECT_EQ(read.test, data_.test);
  EXPECT_EQ(read.catalogue.titles, data_.catalogue.titles);
  EXPECT_EQ(read.catalogue.genre_count, 18);
  EXPECT_EQ(hash_of(read), hash_of(data_));
}

TEST_F(RatingShardsTest, are_never_overwritten) {
  write_rating_shards(shards(), data_, 200);
  expect_error(Failure::usage, {"already has ratings", "--output"}, [&] { write_rating_shards(shards(), data_, 100); });
  EXPECT_EQ(read_rating_shards(shards()).train, data_.train);
}

TEST_F(RatingShardsTest, a_changed_or_missing_file_is_named) {
  write_rating_shards(shards(), data_, 200);
  damage("train-00001.h5");
  expect_error(Failure::bad_data, {"train-00001.h5", "has changed"}, [&] { read_rating_shards(shards()); });
  std::filesystem::remove(shards() / "train-00001.h5");
  expect_error(Failure::bad_data, {"train-00001.h5", "missing"}, [&] { read_rating_shards(shards()); });
  damage("ratings.json");
  write_file_atomically(shards() / "ratings.json", "{\"format\": 2}");
  expect_error(Failure::bad_data, {"ratings.json", "format 1"}, [&] { read_rating_shards(shards()); });
  expect_error(Failure::usage, {"ratings.json", "make_shards movielens"}, [&] { read_rating_shards(folder_.path()); });
}

TEST_F(RatingShardsTest, ids_beyond_the_catalogue_are_refused) {
  data_.train[7].movie = 20;
  expect_error(Failure::bad_data, {"rating 7", "training", "movie 20", "movies below 20"},
               [&] { require_known_ids(data_); });
  data_.train[7].movie = 19;
  data_.catalogue.age[5] = 7;
  expect_error(Failure::bad_data, {"user 5", "class 7", "'age'"}, [&] { require_known_ids(data_); });
}

TEST_F(RatingShardsTest, pairs_are_ids_of_the_catalogue) {
  const std::filesystem::path file = folder_.path() / "pairs";
  write_file_atomically(file, "0,19\n29\t3\n");
  const std::vector<Rating> pairs = read_pairs(file, data_.catalogue);
  EXPECT_EQ(pairs, (std::vector<Rating>{{0, 19, 0}, {29, 3, 0}}));
  EXPECT_EQ(ratings_table(pairs, std::vector<float>{3.25F, 1}, TableFormat::csv),
            "user,movie,stars\n0,19,3.2500\n29,3,1.0000\n");
  EXPECT_EQ(ratings_table(pairs, std::vector<float>{3.25F, 1}, TableFormat::tsv),
            "user\tmovie\tstars\n0\t19\t3.2500\n29\t3\t1.0000\n");
  write_file_atomically(file, "0,19\n30,3\n");
  expect_error(Failure::bad_data, {"line 2", "user below 30", "30,3"}, [&] { read_pairs(file, data_.catalogue); });
}

// With many ratings, no predictor falls below the square of the noise, and the vectors themselves reach it.
TEST_F(RatingShardsTest, synthetic_ratings_have_the_stated_spread) {
  const RatingData noisy =
      make_synthetic_ratings({.users = 50, .movies = 40, .ratings = 20'000, .noise = 0.5, .seed = 3});
  const RatingData clean =
      make_synthetic_ratings({.users = 50, .movies = 40, .ratings = 20'000, .noise = 0, .seed = 3});
  double squares = 0;
  for (std::size_t i = 0; i < noisy.train.size(); ++i) {
    const double noise = static_cast<double>(score_of(noisy.train[i].stars) - score_of(clean.train[i].stars));
    squares += noise * noise / static_cast<double>(noisy.train.size());
  }
  EXPECT_EQ(noisy.best_error, 0.25);
  EXPECT_NEAR(squares, 0.25, 0.01);
  EXPECT_EQ(noisy.train.size(), 18'000U);
  const auto [least, most] = std::ranges::minmax(clean.train, {}, &Rating::stars);
  EXPECT_GE(least.stars, 0);
  EXPECT_LE(most.stars, 5);
}

}  // namespace lockstep::rating_shards_test
