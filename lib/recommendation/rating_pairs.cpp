#include "recommendation/rating_pairs.hpp"

#include <optional>
#include <string_view>

#include "base/error.hpp"
#include "base/io/text_lines.hpp"
#include "base/text/number.hpp"
#include "base/text/printable.hpp"
#include "files/predictions_table.hpp"

namespace lockstep {
namespace {

constexpr std::size_t largest_pairs_file = std::size_t{1} << 30;

std::optional<Rating> pair_in(std::string_view line, const Catalogue& catalogue) {
  const std::size_t separator = line.find_first_of(",\t");
  if (separator == std::string_view::npos) return std::nullopt;
  const auto user = parse_number<int>(line.substr(0, separator), {0, static_cast<int>(catalogue.users() - 1)});
  const auto movie = parse_number<int>(line.substr(separator + 1), {0, static_cast<int>(catalogue.movies() - 1)});
  if (!user || !movie) return std::nullopt;
  return Rating{*user, *movie, 0};
}

}  // namespace

std::vector<Rating> read_pairs(const std::filesystem::path& file, const Catalogue& catalogue) {
  std::vector<Rating> pairs;
  for_each_line(file, largest_pairs_file, [&](std::int64_t number, std::string_view line) {
    const std::optional<Rating> pair = pair_in(line, catalogue);
    require(
        pair.has_value(), Failure::bad_data,
        "line {} of '{}' is no pair of a user below {} and a movie below {}: '{}'. Write one pair per line, such as "
        "12,345.",
        number, file.string(), catalogue.users(), catalogue.movies(), printable(line.substr(0, 80)));
    pairs.push_back(*pair);
  });
  require(!pairs.empty(), Failure::bad_data,
          "'{}' is empty. Write one pair of a user and a movie per line, such as 12,345.", file.string());
  return pairs;
}

std::string ratings_table(std::span<const Rating> pairs, std::span<const float> stars, TableFormat format) {
  const char separator = separator_of(format);
  std::string table = rating_headings(format);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    table += fmt::format("{1}{0}{2}{0}{3:.4f}\n", separator, pairs[i].user, pairs[i].movie, stars[i]);
  }
  return table;
}

}  // namespace lockstep
