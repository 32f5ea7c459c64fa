// MovieLens in its published forms: ratings.dat, users.dat and movies.dat with fields separated by "::" (1M), or
// u.data, u.user and u.item with tabs and bars (100k).
#pragma once

#include <cstdint>
#include <filesystem>

#include "recommendation/rating_data.hpp"

namespace lockstep {

// A tenth of each user's ratings, drawn by `seed` and rounded down, are for the test. Movies lose the year at the end
// of their titles. Throws Error(usage) if a file is absent, Error(bad_data) with the file and the number of a line that
// has another form, or a user or movie that is not listed.
RatingData read_movielens(const std::filesystem::path& folder, std::uint64_t seed);

}  // namespace lockstep
