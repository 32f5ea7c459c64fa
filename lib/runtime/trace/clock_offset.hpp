// Offsets between the clocks of ranks. The monotonic clocks of two nodes have different origins and slightly different
// rates.
//
// A rank asks rank 0 for its time, several times. For the answer with the shortest round trip, rank 0 is assumed to
// have read its clock in the middle of the round trip. The error is at most half of that round trip (Cristian,
// "Probabilistic clock synchronization", Distributed Computing 3, 1989).
//
// Offsets are measured at the beginning and at the end of a trace, and interpolated linearly in between, as tracing
// tools do (Becker, Rabenseifner and Wolf, "Implications of non-constant clock drifts for the timestamps of concurrent
// events", IEEE Cluster 2008).
#pragma once

#include <cstdint>
#include <span>

#include "comm/communicator.hpp"

namespace lockstep {

// All times are of this rank's clock, except `remote_ns`.
struct ClockAnswer {
  std::int64_t sent_ns;
  std::int64_t remote_ns;
  std::int64_t received_ns;
};

struct ClockOffset {
  std::int64_t at_ns = 0;      // time of the measurement, by this rank's clock
  std::int64_t offset_ns = 0;  // add this to this rank's clock to get rank 0's
  std::int64_t error_ns = 0;   // upper bound
};

// From the answer with the shortest round trip. `answers` must not be empty.
ClockOffset best_offset(std::span<const ClockAnswer> answers);
// Collective. Rank 0 answers the ranks one after another.
ClockOffset measure_offset(const Communicator& world);

// Converts a time of this rank to rank 0's clock. Interpolates linearly between the two measurements; outside, the
// nearer one applies.
std::int64_t by_clock_of_rank_0(std::int64_t time_ns, const ClockOffset& first, const ClockOffset& last);

}  // namespace lockstep
