// Pairs of a user and a movie whose rating is to be predicted, and the table of predictions.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/text/table_cell.hpp"
#include "recommendation/rating_data.hpp"

namespace lockstep {

// One pair of ids per line, separated by a comma or a tab. Throws Error(usage) if the file cannot be read, and
// Error(bad_data) with the number of the first line that is no pair of ids of the catalogue, or if the file is empty.
std::vector<Rating> read_pairs(const std::filesystem::path& file, const Catalogue& catalogue);

// A header line, then user, movie and stars of each pair.
std::string ratings_table(std::span<const Rating> pairs, std::span<const float> stars, TableFormat format);

}  // namespace lockstep
