// Ratings of movies by users, with the features of both: the samples of train_recommendation.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep {

// Features by id. Ids without a user or movie have zeros.
struct Catalogue {
  static constexpr std::int64_t genders = 2;
  static constexpr std::int64_t ages = 7;  // the groups of MovieLens 1M: from 1, 18, 25, 35, 45, 50 and 56
  static constexpr std::int64_t occupations = 21;
  static constexpr std::int64_t characters = 256;  // bytes of titles

  // [user ids]; each below the constant of its name
  std::vector<std::int32_t> gender;
  std::vector<std::int32_t> age;
  std::vector<std::int32_t> occupation;
  // [movie ids]; without the year
  std::vector<std::string> titles;
  std::int64_t genre_count = 0;
  std::vector<float> genres;  // [movie ids, genre_count], 1: the movie has the genre

  std::int64_t users() const { return std::ssize(gender); }
  std::int64_t movies() const { return std::ssize(titles); }
};

struct Rating {
  std::int32_t user = 0;  // ids, below those of the catalogue
  std::int32_t movie = 0;
  float stars = 0;  // 1 to 5; synthetic ones may be beyond
  bool operator==(const Rating&) const = default;
};

// What the network learns of a rating, and the stars of its result. The demo of PaddlePaddle scales ratings like this,
// so that its results are from -5 to 5.
constexpr float score_of(float stars) { return 2 * stars - 5; }
constexpr float stars_of(float score) { return (score + 5) / 2; }

struct RatingData {
  std::string name;  // "movielens-1m"
  Catalogue catalogue;
  std::vector<Rating> train;
  std::vector<Rating> test;
  // Mean squared error of scores that no predictor falls below on average; only of synthetic data.
  std::optional<double> best_error = {};
};

// Throws Error(bad_data) if a rating has a user or movie that the catalogue does not have, or a feature a class that
// does not exist.
void require_known_ids(const RatingData& data);

// xxh3-128 over all of it, 32 hex digits.
std::string hash_of(const RatingData& data);

struct SyntheticRatings {
  std::int64_t users = 200;
  std::int64_t movies = 100;
  std::int64_t ratings = 20'000;  // a tenth of them for the test
  std::int64_t rank = 4;
  double noise = 0.5;  // standard deviation of scores
  std::uint64_t seed = 1;
};
// Scores are 5 times the cosine of two vectors of `rank` normal values, one of the user and one of the movie, plus
// noise. So the best error is noise^2. Features other than ids are random.
RatingData make_synthetic_ratings(const SyntheticRatings& options);

}  // namespace lockstep
