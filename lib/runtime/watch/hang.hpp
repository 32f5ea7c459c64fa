// Finds the rank that blocks the others, from the state of every rank and from which ranks make no progress.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/watch/rank_view.hpp"

namespace lockstep {

// How long a rank has made no progress, measured in the observer's own running time. If the whole job, and with it the
// observer, was suspended, no rank counts as late.
class StallTimer {
 public:
  // `progress` is any number that changes with the rank's progress. `waking_seconds` is the running time since the last
  // call.
  void look(std::uint64_t progress, double waking_seconds);
  double seconds() const { return seconds_; }

 private:
  std::optional<std::uint64_t> progress_;
  double seconds_ = 0;
};

std::uint64_t progress_of(const RankStatus& status);  // includes its device's progress
std::uint64_t progress_of(const RankStatus::Device& device);

// Whether all ranks of a team are in view, or only those of some nodes. Only with all ranks in view is it known that no
// rank is working.
enum class Coverage { all_ranks, some_ranks };

struct TeamInView {
  Team team;
  std::vector<RankView> views;
  Coverage coverage = Coverage::some_ranks;
};
// Groups `views` by team. The ranks without a team form a group of their own, which has `job_size` ranks.
std::vector<TeamInView> teams_in_view(std::span<const RankView> views, int job_size);

// The rank that blocks the others, and a description of how.
struct RankFailure {
  int rank = 0;
  std::string host;
  std::string sentence;
};

// The rank of one team that blocks the others, if one has made no progress for `timeout_seconds`. This is a rank that
// is stopped, or stuck in work of its own. If all ranks wait, it is the one whose device has completed the fewest sums.
// Otherwise it is the one that waits at a different place than most.
std::optional<RankFailure> find_hang(std::span<const RankView> views, double timeout_seconds, Coverage coverage);

// "(ranks 0, 2-3: summing gradients at step 412, sum 1644)": where all ranks except `culprit` are.
std::string describe_others(std::span<const RankView> views, int culprit);

}  // namespace lockstep
