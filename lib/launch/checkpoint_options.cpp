#include <fmt/core.h>

#include "launch/number_option.hpp"
#include "launch/options.hpp"

namespace lockstep {

namespace {

void add_interval(CLI::App& app, CheckpointInterval& every) {
  const auto check = [](const std::string& text) {
    return parse_checkpoint_interval(text)
               ? std::string()
               : fmt::format("'{}' is no interval. Write steps (500), epochs (2epochs) or a time (10min, 90s, 1h)",
                             text);
  };
  app.add_option_function<std::string>(
         "--checkpoint-every",
         [&every](const std::string& text) { every = parse_checkpoint_interval(text).value_or(every); },
         "Steps (500), epochs (2epochs) or time (10min) between checkpoints; of several, the first to pass counts")
      ->check(CLI::Validator(check, "an interval", "interval"))
      ->default_str(checkpoint_interval_text(every))
      ->type_name("INTERVAL");
}

void add_time_limit(CLI::App& app, std::optional<double>& limit_seconds) {
  const auto check = [](const std::string& text) {
    return parse_duration(text) ? std::string() : fmt::format("'{}' is no time. Write 90s, 10min or 1.5h", text);
  };
  app.add_option_function<std::string>(
         "--time-limit", [&limit_seconds](const std::string& text) { limit_seconds = parse_duration(text); },
         "Stop with a checkpoint and code 75 before so much time has passed; Slurm's own limit counts in any case")
      ->check(CLI::Validator(check, "a time", "time"))
      ->type_name("TIME");
}

}  // namespace

void declare_checkpoints(CLI::App& app, Recipe& recipe) {
  CheckpointPlan& plan = recipe.checkpoints;
  app.add_option("--checkpoints", plan.folder, "Folder for checkpoints; unset: OUTPUT/checkpoints")
      ->type_name("FOLDER");
  add_interval(app, plan.every);
  add_number(app, "--keep-latest", plan.keep.latest, {1, 1000000},
             "Checkpoints that are kept because they are the newest")
      ->type_name("COUNT");
  add_number(app, "--keep-best", plan.keep.best, {0, 1000000},
             "Checkpoints that are kept because their test accuracy is the best")
      ->type_name("COUNT");
  app.add_option("--resume", plan.resume,
                 "auto: go on from the newest checkpoint, if there is one; never: begin anew; or a checkpoint's file")
      ->type_name("auto|never|FILE");
  CLI::Option* const init_from =
      app.add_option("--init-from", plan.init_from, "Begin with the weights in this model file or checkpoint")
          ->type_name("FILE");
  app.add_flag_callback(
         "--new-head", [&plan] { plan.head = Head::fresh; },
         "With --init-from: not those of the last layer, for other classes")
      ->needs(init_from);
  add_time_limit(app, recipe.time_limit_seconds);
}

}  // namespace lockstep
