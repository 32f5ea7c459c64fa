#include "launch/training_program.hpp"

#include "launch/field_options.hpp"
#include "launch/gpu_ranks.hpp"
#include "launch/run.hpp"
#include "train/remote/remote_training.hpp"
#include "train/train.hpp"

namespace lockstep {
namespace {

bool is_trainer(const ValidSettings& settings) { return !settings.run().trainer_of.empty(); }

Ending train_for_other(Session& session, const ValidSettings& settings) {
  try {
    JoinedServer joined = join_server(session, settings.run());
    open_device(session, device_options(joined.settings.recipe(), joined.settings.run()));
    return train_for_server(session, joined);
  } catch (const TrainingEnded& end) {  // before this trainer had joined
    return ending_of(end);
  }
}

}  // namespace

int run_training(int argc, char** argv, const TrainingHelp& help, Settings settings) {
  if (const std::optional<int> code = spread_over_gpus(argc, argv)) return *code;
  std::string gpus;
  std::optional<ValidSettings> valid;
  Program program;
  program.declare = [&](CLI::App& app) {
    app.description(help.description);
    app.footer("Examples:\n" + help.examples);
    declare_training(app, settings, valid);
    declare_gpus(app, gpus);
  };
  program.device_options = [&]() -> std::optional<DeviceOptions> {
    if (is_trainer(*valid)) return std::nullopt;  // the server's recipe decides
    return device_options(valid->recipe(), valid->run());
  };
  program.watch_options = [&] { return WatchOptions{valid->run().hang_timeout_seconds}; };
  program.stopping = Stopping::graceful;
  program.body = [&](Session& session) {
    return is_trainer(*valid) ? train_for_other(session, *valid) : ending_of(train(session, *valid));
  };
  return run_program(argc, argv, program);
}

}  // namespace lockstep
