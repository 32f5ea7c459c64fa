#include "train/shared_work_report.hpp"

#include <algorithm>
#include <numeric>

#include "base/text/counted.hpp"

namespace lockstep {
namespace {

// The mean over ranks, as a share of the steps' time.
double waiting_share(const SharedWork& work) {
  const double all = work.step_seconds * static_cast<double>(work.micro_batches.size());
  return all > 0 ? 1 - work.busy_seconds / all : 0;
}

}  // namespace

std::string shared_work_text(const SharedWork& work) {
  const auto [fewest, most] = std::ranges::minmax_element(work.micro_batches);
  const std::int64_t all = std::accumulate(work.micro_batches.begin(), work.micro_batches.end(), std::int64_t{0});
  return fmt::format(
      "{} in this attempt, {} (rank {}) to {} (rank {}) per rank; {:.2g} s per step, of which ranks "
      "wait {:.0f} % for the last one",
      counted(all, "update"), *fewest, fewest - work.micro_batches.begin(), *most, most - work.micro_batches.begin(),
      work.step_seconds / static_cast<double>(std::max(work.steps, std::int64_t{1})), 100 * waiting_share(work));
}

SharedWork since(const SharedWork& earlier, const SharedWork& now) {
  SharedWork work = now;
  for (std::size_t rank = 0; rank < earlier.micro_batches.size(); ++rank) {
    work.micro_batches[rank] -= earlier.micro_batches[rank];
  }
  work.busy_seconds -= earlier.busy_seconds;
  work.step_seconds -= earlier.step_seconds;
  work.steps -= earlier.steps;
  return work;
}

nlohmann::json shared_work_fields(const SharedWork& work) {
  return {{"updates_by_rank", work.micro_batches}, {"waiting_share", waiting_share(work)}};
}

}  // namespace lockstep
