// Hyperparameters: options of the program whose values a search chooses.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep {

// One word of a command line: "--lr=0.1", "--nesterov", or empty if the option is left out.
using OptionWord = std::string;

// The option that a word states, without dashes; empty if it states none.
std::string option_of(const OptionWord& word);

struct Hyperparameter {
  enum class Kind : std::uint8_t {
    listed,       // one of `words`: constants and categories
    integer,      // from `least` to `most`, both included
    real,         // uniform from `least` to `most`
    logarithmic,  // base^x, x uniform from `least` to `most`
  };
  std::string option;  // its name, without dashes
  int line = 0;        // in the space file
  Kind kind = Kind::listed;
  std::vector<OptionWord> words = {};
  double least = 0, most = 0;  // of an integer: whole numbers up to 2^53
  double base = 10;            // above 0, not 1
  std::int64_t count = 0;      // points of a grid; 0: none stated
};

bool is_constant(const Hyperparameter& parameter);

// The value of trial `trial` (from 1). A pure function of its arguments; `place` is the index of the hyperparameter.
OptionWord draw(const Hyperparameter& parameter, std::int64_t place, std::uint64_t seed, std::int64_t trial);

// The smallest and the largest value, or all listed words.
std::vector<OptionWord> extreme_words(const Hyperparameter& parameter);

// The number of points in a grid: of an integer at most one for each value, all of them if no count is stated.
std::int64_t grid_points(const Hyperparameter& parameter);
// Evenly spaced values, the first and last included; one point is the middle. `point` counts from 0.
OptionWord grid_word(const Hyperparameter& parameter, std::int64_t point);

}  // namespace lockstep
