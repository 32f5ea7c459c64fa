#include "search/space/hyperparameter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/random.hpp"
#include "base/text/number.hpp"

namespace lockstep {
namespace {

OptionWord word_at(const Hyperparameter& parameter, double value) {
  if (parameter.kind == Hyperparameter::Kind::integer) {
    return fmt::format("--{}={}", parameter.option, static_cast<std::int64_t>(value));
  }
  const double number = parameter.kind == Hyperparameter::Kind::logarithmic ? std::pow(parameter.base, value) : value;
  return fmt::format("--{}={}", parameter.option, number_text(number));
}

// Uniform in [0, 1), with 53 bits.
double uniform_number(std::int64_t place, std::uint64_t seed, std::int64_t trial) {
  const auto bits = philox(seed, stream_counter(Stream::search, place), static_cast<std::uint64_t>(trial));
  return static_cast<double>(std::uint64_t{bits[0]} << 21 | bits[1] >> 11) * 0x1p-53;
}

}  // namespace

std::string option_of(const OptionWord& word) {
  return word.starts_with("--") ? word.substr(2, word.find('=') - 2) : "";
}

bool is_constant(const Hyperparameter& parameter) {
  return parameter.kind == Hyperparameter::Kind::listed && parameter.words.size() == 1;
}

OptionWord draw(const Hyperparameter& parameter, std::int64_t place, std::uint64_t seed, std::int64_t trial) {
  const double share = uniform_number(place, seed, trial);
  const double range = parameter.most - parameter.least;
  switch (parameter.kind) {
    case Hyperparameter::Kind::listed:
      return parameter.words.at(static_cast<std::size_t>(
          share * static_cast<double>(parameter.words.size())));  // below size: share is below 1
    case Hyperparameter::Kind::integer:
      return word_at(parameter, std::min(parameter.least + std::floor(share * (range + 1)), parameter.most));
    default:
      return word_at(parameter, parameter.least + share * range);
  }
}

std::vector<OptionWord> extreme_words(const Hyperparameter& parameter) {
  if (parameter.kind == Hyperparameter::Kind::listed) return parameter.words;
  return {word_at(parameter, parameter.least), word_at(parameter, parameter.most)};
}

std::int64_t grid_points(const Hyperparameter& parameter) {
  if (parameter.kind == Hyperparameter::Kind::listed) return std::ssize(parameter.words);
  if (parameter.kind != Hyperparameter::Kind::integer) return parameter.count;
  const auto values = static_cast<std::int64_t>(parameter.most - parameter.least) + 1;
  return parameter.count == 0 ? values : std::min(parameter.count, values);
}

OptionWord grid_word(const Hyperparameter& parameter, std::int64_t point) {
  if (parameter.kind == Hyperparameter::Kind::listed) return parameter.words.at(static_cast<std::size_t>(point));
  const std::int64_t points = grid_points(parameter);
  const double share = points == 1 ? 0.5 : static_cast<double>(point) / static_cast<double>(points - 1);
  const double value = parameter.least + share * (parameter.most - parameter.least);
  return word_at(parameter, parameter.kind == Hyperparameter::Kind::integer ? std::round(value) : value);
}

}  // namespace lockstep
