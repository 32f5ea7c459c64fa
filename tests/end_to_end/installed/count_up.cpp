// Adds a number of every rank to x in each step, as the program of Determined's Core API tutorial does: after 100 steps
// on 8 ranks, x is 800 times --increment-by. It shows reports, checkpoints, resume and stops of a custom training loop.
#include <chrono>
#include <numeric>
#include <thread>
#include <vector>

#include "launch/custom_loop.hpp"

using namespace lockstep;

namespace {

struct CountUpOptions {
  static constexpr std::array<std::string_view, 1> metrics{"x"};
  static constexpr std::array<std::string_view, 1> may_change{"step-seconds"};
  std::int64_t increment_by = 1;
  double step_seconds = 0;

  void declare(CLI::App& app) {
    app.description("Adds a number of every rank to x in each step.");
    add_number(app, "--increment-by", increment_by, {1, 1000}, "Number that each rank adds in a step");
    add_number(app, "--step-seconds", step_seconds, {0, 60}, "Time that a step takes")->type_name("SECONDS");
  }
};

void save(CustomRun& run, std::int64_t steps, double x) {
  run.save_checkpoint(steps, {{"x", {static_cast<float>(x)}}}, {{"steps_completed", steps}});
}

void count_up(CustomRun& run, const CountUpOptions& options) {
  constexpr std::int64_t report_every = 10;
  const bool is_new = run.steps_completed() == 0;
  double x = is_new ? 0 : run.restored().arrays.at("x").at(0);
  const double own = static_cast<double>(options.increment_by);
  std::vector<double> all(static_cast<std::size_t>(run.world().size()));
  for (std::int64_t steps = run.steps_completed() + 1; steps <= run.max_steps(); ++steps) {
    run.world().all_gather(std::span(&own, 1), all);
    x += std::accumulate(all.begin(), all.end(), 0.0);
    std::this_thread::sleep_for(std::chrono::duration<double>(options.step_seconds));
    if (steps % report_every != 0) continue;
    if (run.world().rank() == 0) run.report_training_metrics(steps, {{"x", x}});
    save(run, steps, x);
    if (run.should_preempt()) return;
  }
  if (run.world().rank() == 0) run.report_validation_metrics(run.max_steps(), {{"x", x}});
  save(run, run.max_steps(), x);
}

}  // namespace

int main(int argc, char** argv) { return run_custom_loop<CountUpOptions>(argc, argv, count_up); }
