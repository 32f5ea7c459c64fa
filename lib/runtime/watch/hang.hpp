// Which rank holds the others up, decided from where every rank says it is, and from which ranks say nothing new.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/watch/rank_view.hpp"

namespace lockstep {

// How long a rank has stood still, by the observer's own waking time: a job that was suspended as a whole, and an
// observer that slept with it, find nobody late.
class Stillness {
 public:
  // `progress` is any number that changes when the rank gets on; `waking_seconds` have passed since the last look.
  void look(std::uint64_t progress, double waking_seconds);
  double seconds() const { return seconds_; }

 private:
  std::optional<std::uint64_t> progress_;
  double seconds_ = 0;
};

std::uint64_t progress_of(const RankStatus& status);  // its device's included
std::uint64_t progress_of(const RankStatus::Device& device);

// Whether all ranks of a team are in view, or those of some nodes. Only of all can it be said that nobody works.
enum class Coverage { all_ranks, some_ranks };

struct TeamInView {
  Team team;
  std::vector<RankView> views;
  Coverage coverage = Coverage::some_ranks;
};
// Each team of `views`; the ranks that are in none are one by themselves, of `job_size` ranks.
std::vector<TeamInView> teams_in_view(std::span<const RankView> views, int job_size);

// Who stands in the way of the others, and how.
struct Blame {
  int rank = 0;
  std::string host;
  std::string sentence;
};

// Of one team, the rank that keeps the others from going on, if one has stood still for `timeout_seconds`. That is a
// rank that is stopped or stands still in work of its own. Where all ranks wait, it is the one whose device has done
// least or, failing that, the one that waits elsewhere than most.
std::optional<Blame> find_hang(std::span<const RankView> views, double timeout_seconds, Coverage coverage);

// "(ranks 0, 2-3: summing gradients at step 412, sum 1644)": where all but `culprit` are.
std::string describe_others(std::span<const RankView> views, int culprit);

}  // namespace lockstep
