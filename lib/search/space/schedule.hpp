// How long trials are trained before they are judged: the brackets and rungs of ASHA (Li et al., "A system for
// massively parallel hyperparameter tuning", MLSys 2020), with the arithmetic of Determined.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/text/choice.hpp"

namespace lockstep {

enum class SearcherKind : std::uint8_t { single, random, grid, custom, adaptive_asha, asha, successive_halving };
inline constexpr std::array<Choice<SearcherKind>, 7> searcher_kinds{
    {{"single", SearcherKind::single},
     {"random", SearcherKind::random},
     {"grid", SearcherKind::grid},
     {"custom", SearcherKind::custom},
     {"adaptive_asha", SearcherKind::adaptive_asha},
     {"asha", SearcherKind::asha},
     {"successive_halving", SearcherKind::successive_halving}}};

// Which brackets adaptive_asha runs. With R as the largest number of rungs: aggressive {R}, standard {R/2+1 .. R},
// conservative {1 .. R}.
enum class BracketMode : std::uint8_t { aggressive, standard, conservative };
inline constexpr std::array<Choice<BracketMode>, 3> bracket_modes{{{"aggressive", BracketMode::aggressive},
                                                                   {"standard", BracketMode::standard},
                                                                   {"conservative", BracketMode::conservative}}};

// What follows a trial's result at a rung: it waits until enough others are worse, or it continues or ends at once.
enum class Promotion : std::uint8_t { when_best, stop_once };

inline constexpr std::int64_t most_trials = 100'000;

struct SearcherOptions {
  SearcherKind kind = SearcherKind::single;
  std::int64_t max_trials = 1;
  std::int64_t max_concurrent_trials = 16;  // trials that asynchronous searchers create before they have results
  std::int64_t max_length = 1;              // of a whole training, in any unit
  double divisor = 4;                       // above 1
  std::int64_t max_rungs = 5;
  BracketMode mode = BracketMode::standard;
  Promotion promotion = Promotion::when_best;
};

inline bool has_rungs(SearcherKind kind) { return kind >= SearcherKind::adaptive_asha; }

struct Bracket {
  std::vector<std::int64_t> lengths;  // of each rung, ascending, absolute; the last one is max_length
  std::int64_t trials = 1;
  std::int64_t concurrent = 1;  // trials to create before there are results
};

// Sorted by the number of rungs, descending. Searchers without rungs have one bracket with one rung.
std::vector<Bracket> brackets_of(const SearcherOptions& options);

// The least number of trials that reach each rung: 1/divisor of those at the rung before, rounded down, at least 1.
std::vector<std::int64_t> expected_trials(const Bracket& bracket, double divisor);

}  // namespace lockstep
