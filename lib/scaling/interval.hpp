// What repeated measurements say: what is usual and where it truly lies, by Student's t.
#pragma once

#include <limits>
#include <span>

namespace lockstep {

// The ends are of 95 %; without bounds where too little was measured to tell them.
struct Interval {
  double middle = 0;
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();

  bool is_bounded() const;
  double half_width() const { return (high - low) / 2; }
};

// By how many standard errors of the mean the ends lie from it, with so many degrees of freedom, one or more.
double students_t(int degrees);

// Of one value or more; a single one tells no ends.
Interval mean_interval(std::span<const double> values);

// Of times: about the median, which a repeat that something disturbed does not move, with the deviations from it, which
// such a repeat does widen. Of one value or more; a single one tells no ends.
Interval median_interval(std::span<const double> values);

// The mean of the largest of `count` draws from a normal distribution of standard deviation 1 and mean 0, one or more
// (Blom 1958). A step waits for the slowest of its ranks.
double expected_maximum(int count);

}  // namespace lockstep
