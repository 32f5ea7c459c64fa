#include "runtime/stop/stop_agreement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <vector>

#include "base/log.hpp"
#include "job/job_environment.hpp"

namespace lockstep {

StopAgreement::StopAgreement(const Communicator& world, const ProcessSignals* signals,
                             std::optional<double> time_limit_seconds)
    : world_(world), signals_(signals) {
  if (world.rank() == 0) time_limit_.emplace(time_limit_seconds, this_job().slurm);
}

void StopAgreement::end_start_if_asked(const std::string& outcome) const {
  const int asked = static_cast<int>(std::lround(world_.max(signals_ == nullptr ? 0 : signals_->request())));
  if (asked == 0) return;
  const std::string sentence = fmt::format("stopped before the first step ({}): {}", signal_name(asked), outcome);
  log::info(sentence);
  throw_on_all_ranks(world_, 0, Error(Failure::stopped_early, sentence));
}

void StopAgreement::wait_for_rank_0(const Work& work) const {
  const auto waits_on = [this](double rank_0_waits) { return world_.max(rank_0_waits) > 0; };
  ContainedFailure failure(world_);
  if (world_.rank() == 0) {
    failure.run([&] {
      work([&] {
        waits_on(1);
        end_start_if_asked();
      });
    });
    waits_on(0);
  } else {
    while (waits_on(0)) end_start_if_asked();
  }
  failure.agree(Phase::meeting);
}

void StopAgreement::note_step(double seconds) { step_seconds_ = std::max(step_seconds_, seconds); }

void StopAgreement::note_test(double seconds) { test_seconds_ = seconds; }

bool StopAgreement::must_ask(const ToFinish& left) {
  if (!own_reason_.empty()) return false;
  constexpr double margin_seconds = 2;
  const double lead_seconds =
      2 * (left.checkpoint_seconds + step_seconds_) + margin_seconds + (left.test_follows ? test_seconds_ : 0);
  if (signals_ != nullptr && signals_->is_stop_requested()) {
    own_reason_ = signal_name(signals_->request());
  } else if (time_limit_ && time_limit_->seconds_left() < lead_seconds) {
    own_reason_ = time_limit_->source();
  }
  return !own_reason_.empty();
}

void StopAgreement::agree(std::int64_t step, int steps_ahead) {
  if (!stop_step_) stop_step_ = step + 1 + steps_ahead;
}

std::string StopAgreement::reason() const {
  const std::vector<std::string> reasons = world_.all_gather(own_reason_);
  const auto asked = std::ranges::find_if_not(reasons, &std::string::empty);
  assert(asked != reasons.end());
  return *asked;
}

}  // namespace lockstep
