// Ratings on disk, made by `make_shards movielens`:
//
//   ratings.json    format, name, and the hash of each other file; written last
//   catalogue.h5    features: user.gender, user.age, user.occupation [users], movie.genres [movies, genres], titles
//   train-00000.h5  user, movie and stars [ratings]; likewise test-00000.h5, ...
//
// The HDF5 files have the common format of model files (files/tensor_file.hpp).
#pragma once

#include <cstdint>
#include <filesystem>

#include "recommendation/rating_data.hpp"

namespace lockstep {

// Ids are below this: row numbers are exact in fp32, and tables for all ids fit into memory.
inline constexpr std::int64_t max_rating_ids = std::int64_t{1} << 20;

// Throws Error(usage) if the folder has ratings already.
void write_rating_shards(const std::filesystem::path& folder, const RatingData& data, std::int64_t ratings_per_shard);

bool has_rating_shards(const std::filesystem::path& folder);
// Verifies all hashes. Throws Error(usage) if the folder has no ratings, Error(bad_data) naming a file that has changed
// or is damaged. require_known_ids() of the result passes.
RatingData read_rating_shards(const std::filesystem::path& folder);

}  // namespace lockstep
