#include "recommendation/rating_data.hpp"

#include <array>
#include <cmath>
#include <span>

#include "base/error.hpp"
#include "base/random.hpp"
#include "dataset/shards/hash.hpp"

namespace lockstep {
namespace {

// Numbers within Stream::synthetic, after those of synthetic pictures.
enum class Draw : std::int64_t { users = 1 << 20, movies, user_features, movie_features, ratings };

std::array<std::uint32_t, 4> draw(std::uint64_t seed, Draw use, std::int64_t index) {
  return philox(seed, stream_counter(Stream::synthetic, static_cast<std::int64_t>(use)),
                static_cast<std::uint64_t>(index));
}

std::int32_t below(std::int64_t count, std::uint32_t bits) {
  return static_cast<std::int32_t>(std::uint64_t{bits} * static_cast<std::uint64_t>(count) >> 32);
}

// [count, rank]; each row has length 1.
std::vector<double> unit_vectors(std::uint64_t seed, Draw use, std::int64_t count, std::int64_t rank) {
  std::vector<double> vectors(static_cast<std::size_t>(count * rank));
  for (std::int64_t row = 0; row < count; ++row) {
    const auto own = std::span(vectors).subspan(static_cast<std::size_t>(row * rank), static_cast<std::size_t>(rank));
    double squares = 0;
    for (std::int64_t i = 0; i < rank; ++i) {
      const auto bits = draw(seed, use, row * rank + i);
      const auto value = static_cast<double>(normal(bits[0], bits[1]));
      own[static_cast<std::size_t>(i)] = value;
      squares += value * value;
    }
    for (double& value : own) value /= std::sqrt(squares);
  }
  return vectors;
}

// Words of four to eleven letters.
std::string drawn_title(const std::array<std::uint32_t, 4>& bits) {
  std::string title(static_cast<std::size_t>(4 + below(8, bits[0])), ' ');
  std::uint64_t letters = std::uint64_t{bits[1]} << 32 | bits[2];
  for (char& letter : title) {
    letter = static_cast<char>('a' + letters % 26);
    letters /= 26;
  }
  return title;
}

Catalogue drawn_catalogue(const SyntheticRatings& options) {
  Catalogue catalogue;
  for (std::int64_t user = 0; user < options.users; ++user) {
    const auto bits = draw(options.seed, Draw::user_features, user);
    catalogue.gender.push_back(below(Catalogue::genders, bits[0]));
    catalogue.age.push_back(below(Catalogue::ages, bits[1]));
    catalogue.occupation.push_back(below(Catalogue::occupations, bits[2]));
  }
  catalogue.genre_count = 18;
  for (std::int64_t movie = 0; movie < options.movies; ++movie) {
    const auto bits = draw(options.seed, Draw::movie_features, movie);
    catalogue.titles.push_back(drawn_title(bits));
    const std::int32_t genre = below(catalogue.genre_count, bits[3]);
    for (std::int32_t i = 0; i < catalogue.genre_count; ++i) catalogue.genres.push_back(i == genre ? 1.0F : 0.0F);
  }
  return catalogue;
}

void require_known(const std::vector<Rating>& ratings, const Catalogue& catalogue, const char* split) {
  for (std::size_t i = 0; i < ratings.size(); ++i) {
    const Rating& rating = ratings[i];
    const bool is_known = rating.user >= 0 && rating.user < catalogue.users() && rating.movie >= 0 &&
                          rating.movie < catalogue.movies() && std::isfinite(rating.stars);
    require(is_known, Failure::bad_data,
            "rating {} of the {} split is of user {} and movie {}, but the data have users below {} and movies below "
            "{}. Make the shards again.",
            i, split, rating.user, rating.movie, catalogue.users(), catalogue.movies());
  }
}

void require_classes(const std::vector<std::int32_t>& of_users, std::int64_t classes, const char* feature) {
  for (std::size_t user = 0; user < of_users.size(); ++user) {
    require(of_users[user] >= 0 && of_users[user] < classes, Failure::bad_data,
            "user {} has class {} of the feature '{}', which has {} classes. Make the shards again.", user,
            of_users[user], feature, classes);
  }
}

template <class Element>
void add(GrowingHash& hash, const std::vector<Element>& values) {
  const std::uint64_t count = values.size();
  hash.add(std::as_bytes(std::span(&count, 1)));
  hash.add(std::as_bytes(std::span(values)));
}

}  // namespace

void require_known_ids(const RatingData& data) {
  require_known(data.train, data.catalogue, "training");
  require_known(data.test, data.catalogue, "test");
  require_classes(data.catalogue.gender, Catalogue::genders, "gender");
  require_classes(data.catalogue.age, Catalogue::ages, "age");
  require_classes(data.catalogue.occupation, Catalogue::occupations, "occupation");
}

std::string hash_of(const RatingData& data) {
  GrowingHash hash;
  add(hash, data.catalogue.gender);
  add(hash, data.catalogue.age);
  add(hash, data.catalogue.occupation);
  for (const std::string& title : data.catalogue.titles) add(hash, std::vector<char>(title.begin(), title.end()));
  add(hash, data.catalogue.genres);
  add(hash, data.train);
  add(hash, data.test);
  return hash.hex();
}

RatingData make_synthetic_ratings(const SyntheticRatings& options) {
  RatingData data;
  data.name = "synthetic";
  data.catalogue = drawn_catalogue(options);
  data.best_error = options.noise * options.noise;
  const std::int64_t rank = options.rank;
  const std::vector<double> users = unit_vectors(options.seed, Draw::users, options.users, rank);
  const std::vector<double> movies = unit_vectors(options.seed, Draw::movies, options.movies, rank);
  for (std::int64_t i = 0; i < options.ratings; ++i) {
    const auto bits = draw(options.seed, Draw::ratings, i);
    const std::int32_t user = below(options.users, bits[0]);
    const std::int32_t movie = below(options.movies, bits[1]);
    double cosine = 0;
    for (std::int64_t k = 0; k < rank; ++k) {
      cosine += users[static_cast<std::size_t>(user * rank + k)] * movies[static_cast<std::size_t>(movie * rank + k)];
    }
    const double score = 5 * cosine + options.noise * static_cast<double>(normal(bits[2], bits[3]));
    const Rating rating{user, movie, stars_of(static_cast<float>(score))};
    (i % 10 == 9 ? data.test : data.train).push_back(rating);
  }
  return data;
}

}  // namespace lockstep
