#include "recommendation/rating_shards.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/text/json_text.hpp"
#include "dataset/shards/hash.hpp"
#include "files/tensor_file.hpp"
#include "run/run_file.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr const char* manifest_name = "ratings.json";
constexpr const char* catalogue_name = "catalogue.h5";
constexpr const char* titles_dataset = "titles";
constexpr const char* format_attribute = "ratings_format";
constexpr std::int32_t ratings_format = 1;
constexpr std::size_t manifest_bytes = std::size_t{1} << 26;
constexpr FileKind kind{"file of ratings", "Make the shards again."};

std::string shard_name(const char* split, std::size_t index) { return fmt::format("{}-{:05}.h5", split, index); }

template <class Values>
std::vector<float> floats(const Values& values) {
  return {values.begin(), values.end()};
}

std::vector<std::byte> catalogue_image(const Catalogue& catalogue) {
  std::string titles;
  for (const std::string& title : catalogue.titles) titles += title + '\n';
  const std::int64_t users = catalogue.users();
  std::vector<ParameterStore::Entry> tensors = {
      {"movie.genres", {catalogue.movies(), catalogue.genre_count}, catalogue.genres},
      {"user.age", {users}, floats(catalogue.age)},
      {"user.gender", {users}, floats(catalogue.gender)},
      {"user.occupation", {users}, floats(catalogue.occupation)}};
  TensorFileWriter file;
  file.write_number(format_attribute, ratings_format);
  file.write_tensors("features", tensors);
  file.write_long_text(titles_dataset, titles);
  return file.image();
}

std::vector<std::byte> shard_image(std::span<const Rating> ratings) {
  std::vector<ParameterStore::Entry> tensors;
  for (const char* name : {"movie", "stars", "user"}) tensors.push_back({name, {std::ssize(ratings)}, {}});
  for (const Rating& rating : ratings) {
    tensors[0].values.push_back(static_cast<float>(rating.movie));
    tensors[1].values.push_back(rating.stars);
    tensors[2].values.push_back(static_cast<float>(rating.user));
  }
  TensorFileWriter file;
  file.write_number(format_attribute, ratings_format);
  file.write_tensors("ratings", tensors);
  return file.image();
}

// Returns the file's hash.
std::string write(const fs::path& file, const std::vector<std::byte>& image) {
  write_file_atomically(file, image);
  return xxh3_128_hex(image);
}

Json write_split(const fs::path& folder, const char* split, std::span<const Rating> ratings, std::int64_t per_shard) {
  Json hashes = Json::array();
  const auto step = static_cast<std::size_t>(per_shard);
  for (std::size_t first = 0; first < ratings.size(); first += step) {
    const auto part = ratings.subspan(first, std::min(step, ratings.size() - first));
    hashes.push_back(write(folder / shard_name(split, hashes.size()), shard_image(part)));
  }
  return hashes;
}

std::string read_intact(const fs::path& file, const std::string& hash) {
  require(!is_absent(file), Failure::bad_data, "'{}' is missing. Make the shards again.", file.string());
  std::string image = read_file(file, tensor_file_limits::file_bytes);
  require(xxh3_128_hex(std::as_bytes(std::span(image))) == hash, Failure::bad_data,
          "'{}' has changed since the shards were made: '{}' has another hash. Make the shards again.", file.string(),
          manifest_name);
  return image;
}

// The values of `name`, which has `count` of them; any number if `count` is negative.
std::vector<float> take(const TensorFileReader& file, std::vector<ParameterStore::Entry>& tensors, const char* name,
                        std::int64_t count) {
  for (ParameterStore::Entry& tensor : tensors) {
    if (tensor.name == name && (count < 0 || std::ssize(tensor.values) == count)) return std::move(tensor.values);
  }
  file.damaged(fmt::format("it has no '{}' of the right size", name));
}

// Whole numbers from 0 to below max_rating_ids.
std::vector<std::int32_t> whole(const TensorFileReader& file, const std::vector<float>& values, const char* name) {
  std::vector<std::int32_t> numbers;
  numbers.reserve(values.size());
  for (const float value : values) {
    const bool is_id = value >= 0 && value < static_cast<float>(max_rating_ids) && value == std::trunc(value);
    if (!is_id) {
      file.damaged(fmt::format("'{}' contains {}, which is no id or class", name, value));
    }
    numbers.push_back(static_cast<std::int32_t>(value));
  }
  return numbers;
}

Catalogue read_catalogue(const fs::path& path, const std::string& hash) {
  std::string image = read_intact(path, hash);
  TensorFileReader file(kind, path.string(), image);
  file.require_format(format_attribute, ratings_format, ratings_format);
  const std::string titles = file.long_text(titles_dataset);
  Catalogue catalogue;
  for (std::size_t first = 0; first < titles.size();) {
    const std::size_t end = std::min(titles.find('\n', first), titles.size());
    catalogue.titles.push_back(titles.substr(first, end - first));
    first = end + 1;
  }
  std::vector<ParameterStore::Entry> tensors = file.tensors("features");
  catalogue.gender = whole(file, take(file, tensors, "user.gender", -1), "user.gender");
  catalogue.age = whole(file, take(file, tensors, "user.age", catalogue.users()), "user.age");
  catalogue.occupation = whole(file, take(file, tensors, "user.occupation", catalogue.users()), "user.occupation");
  catalogue.genres = take(file, tensors, "movie.genres", -1);
  const std::int64_t movies = catalogue.movies();
  if (movies == 0 || std::ssize(catalogue.genres) % movies != 0) file.damaged("its genres do not fit its titles");
  catalogue.genre_count = std::ssize(catalogue.genres) / movies;
  return catalogue;
}

void read_shard(const fs::path& path, const std::string& hash, std::vector<Rating>& ratings) {
  std::string image = read_intact(path, hash);
  TensorFileReader file(kind, path.string(), image);
  file.require_format(format_attribute, ratings_format, ratings_format);
  std::vector<ParameterStore::Entry> tensors = file.tensors("ratings");
  const std::vector<std::int32_t> users = whole(file, take(file, tensors, "user", -1), "user");
  const std::vector<std::int32_t> movies = whole(file, take(file, tensors, "movie", std::ssize(users)), "movie");
  const std::vector<float> stars = take(file, tensors, "stars", std::ssize(users));
  for (std::size_t i = 0; i < users.size(); ++i) ratings.push_back({users[i], movies[i], stars[i]});
}

}  // namespace

void write_rating_shards(const fs::path& folder, const RatingData& data, std::int64_t ratings_per_shard) {
  require(!has_rating_shards(folder), Failure::usage,
          "'{}' already has ratings ('{}'), which stay as they are. Choose another --output.", folder.string(),
          manifest_name);
  fs::create_directories(folder);
  const Json manifest = {{"format", ratings_format},
                         {"name", data.name},
                         {"catalogue", write(folder / catalogue_name, catalogue_image(data.catalogue))},
                         {"train", write_split(folder, "train", data.train, ratings_per_shard)},
                         {"test", write_split(folder, "test", data.test, ratings_per_shard)}};
  write_file_atomically(folder / manifest_name, json_text(manifest) + "\n");
}

bool has_rating_shards(const fs::path& folder) { return !is_absent(folder / manifest_name); }

RatingData read_rating_shards(const fs::path& folder) {
  const fs::path path = folder / manifest_name;
  require(has_rating_shards(folder), Failure::usage,
          "'{}' has no '{}'. Name a folder that `make_shards movielens` has made.", folder.string(), manifest_name);
  constexpr int nesting_limit = 4;
  const Json manifest = try_parse_json(read_file(path, manifest_bytes), nesting_limit);
  require(manifest.is_object() && count_in(manifest, "format") == ratings_format, Failure::bad_data,
          "'{}' is damaged, or of another version: it does not state the format {}. Make the shards again.",
          path.string(), ratings_format);
  RatingData data;
  data.name = text_in(manifest, "name");
  data.catalogue = read_catalogue(folder / catalogue_name, text_in(manifest, "catalogue"));
  const auto read_split = [&](const char* split, std::vector<Rating>& ratings) {
    std::size_t index = 0;
    for (const std::string& hash : texts_in(manifest, split)) {
      read_shard(folder / shard_name(split, index++), hash, ratings);
    }
  };
  read_split("train", data.train);
  read_split("test", data.test);
  require_known_ids(data);
  return data;
}

}  // namespace lockstep
