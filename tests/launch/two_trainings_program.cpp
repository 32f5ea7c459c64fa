// Trains twice at the same time, on the two halves of its ranks, each half in its own folder with its own data:
// two_trainings_program DATA OUTPUT [SECONDS], where DATA has the folders 0 and 1. With SECONDS the first one trains
// until it is out of time.
#include <filesystem>
#include <optional>
#include <string>

#include "launch/run.hpp"
#include "train/train.hpp"

namespace lockstep {
namespace {

struct TwoTrainings {
  void declare(CLI::App& app) {
    app.add_option("DATA", data)->type_name("FOLDER")->required();
    app.add_option("OUTPUT", output)->type_name("FOLDER")->required();
    app.add_option("SECONDS", seconds)->type_name("FLOAT");
  }
  DeviceOptions device_options() const { return {.name = "cpu", .threads = 1}; }
  double hang_timeout_seconds() const { return 4; }
  static constexpr Stopping stopping = Stopping::graceful;

  std::filesystem::path data;
  std::filesystem::path output;
  std::optional<double> seconds;
};

Ending train_twice(Session& session, const TwoTrainings& options) {
  const int half = session.world.rank() < session.world.size() / 2 ? 0 : 1;
  const Communicator team = session.world.split(half, session.world.rank());
  Session own{.world = team, .backend = std::move(session.backend), .label = std::to_string(half)};
  own.signals = session.signals;
  Settings settings;
  settings.recipe.model = "lenet";
  const bool is_limited = half == 0 && options.seconds;
  settings.recipe.epochs = {is_limited ? 1'000'000 : 4};
  if (is_limited) settings.run.time_limit_seconds = options.seconds;
  settings.recipe.batch.global_batch = {16};
  settings.recipe.learning_rate.base_batch = 0;
  settings.recipe.learning_rate.schedule = Schedule::constant;
  settings.recipe.learning_rate.warmup_epochs = 0;
  settings.run.data = options.data / std::to_string(half);
  settings.run.output = options.output / std::to_string(half);
  return ending_of(session.world, train(own, ValidSettings(settings)));
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) { return lockstep::run<lockstep::TwoTrainings>(argc, argv, lockstep::train_twice); }
