// How much the hyperparameters explain of the differences between trials. Pure.
//
// Results are replaced by their ranks, so that neither the scale of the metric nor a diverged trial dominates. Of a
// number, the importance is the squared rank correlation (Spearman); of categories, the share of variance between them
// (eta squared). Both are the R^2 of a regression with p coefficients (1, or categories - 1), and are adjusted for the
// share that chance explains:
//
//   1 - (1 - R^2) (n - 1) / (n - p - 1), at least 0, of n trials
//
// Interactions are not seen: a parameter that matters only together with another one can have no importance.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace lockstep {

struct ImportanceInterval {
  double low = 0;
  double high = 0;
};

struct Importance {
  double share = 0;             // 0 to 1
  ImportanceInterval interval;  // 95 % of bootstrap samples of the trials
  // Of a number, the rank correlation with the results; 0 for categories.
  double correlation = 0;
};

inline constexpr std::size_t least_trials = 10;
inline constexpr std::int64_t bootstrap_samples = 1000;

// `results` and the values of one parameter, by trial. Nothing with fewer than least_trials, if there are fewer than
// two trials for each category, or if all values or all results are equal.
std::optional<Importance> importance_of_numbers(std::span<const double> values, std::span<const double> results);
std::optional<Importance> importance_of_categories(std::span<const std::string> values,
                                                   std::span<const double> results);

}  // namespace lockstep
