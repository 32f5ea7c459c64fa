// How far the clocks of ranks are apart. Monotonic clocks of two nodes begin anywhere, and run a little differently.
//
// A rank asks rank 0 for its time, several times. Of the answer that came back soonest it takes that rank 0 looked in
// the middle between asking and hearing: the error is half of that round trip at most (Cristian, "Probabilistic clock
// synchronization", Distributed Computing 3, 1989). That is done when a trace begins and when it ends; in between the
// difference is taken to move in a straight line, as tracing tools do (Becker, Rabenseifner and Wolf, "Implications of
// non-constant clock drifts for the timestamps of concurrent events", IEEE Cluster 2008).
#pragma once

#include <cstdint>
#include <span>

#include "comm/communicator.hpp"

namespace lockstep {

// By this rank's clock, but for `theirs`.
struct ClockAnswer {
  std::int64_t asked_ns;
  std::int64_t theirs_ns;
  std::int64_t heard_ns;
};

struct ClockOffset {
  std::int64_t at_ns = 0;      // when, by this rank's clock
  std::int64_t offset_ns = 0;  // what must be added to this rank's clock to get rank 0's
  std::int64_t error_ns = 0;   // at most
};

// By the answer that came back soonest. `answers`: one at least.
ClockOffset best_offset(std::span<const ClockAnswer> answers);
// Collective: rank 0 answers one rank after another.
ClockOffset measure_offset(const Communicator& world);

// A time of this rank by rank 0's clock: between the two measurements in a straight line, outside as at the nearer one.
std::int64_t by_clock_of_rank_0(std::int64_t time_ns, const ClockOffset& first, const ClockOffset& last);

}  // namespace lockstep
