#include "launch/custom_loop.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/text/json_text.hpp"
#include "launch/field_options.hpp"

namespace lockstep {
namespace {

// Of an option: what the user states, otherwise its default. A flag is "true" or "".
std::string value_of(const CLI::Option& option) {
  if (option.count() == 0) return option.get_default_str();
  return option.get_items_expected_max() == 0 ? "true" : fmt::format("{}", fmt::join(option.results(), " "));
}

nlohmann::json values_of(const std::vector<const CLI::Option*>& options, DeclaredNames left_out) {
  nlohmann::json values = nlohmann::json::object();
  for (const CLI::Option* option : options) {
    const std::string flag = option->get_name();
    const std::string name = flag.substr(std::min(flag.find_first_not_of('-'), flag.size()));
    if (std::ranges::find(left_out, name) == left_out.end()) values[name] = value_of(*option);
  }
  return values;
}

}  // namespace

void declare_custom_loop(CLI::App& app, const std::function<void(CLI::App&)>& declare, DeclaredNames metrics,
                         DeclaredNames may_change, CustomRunOptions& run) {
  const std::vector<const CLI::Option*> before = std::as_const(app).get_options();
  declare(app);
  std::vector<const CLI::Option*> own = std::as_const(app).get_options();
  std::erase_if(own, [&](const CLI::Option* option) { return std::ranges::find(before, option) != before.end(); });
  const auto settings = std::make_shared<Settings>();
  declare_fields(app, *settings, {"output", "max-steps", "resume", "keep-latest", "time-limit"});
  app.get_option("--output")
      ->required()
      ->default_str("")
      ->description("Folder for metrics.jsonl, summary.json and checkpoints");
  app.get_option("--max-steps")->required()->default_str("")->description("Number of steps, over all attempts");
  const PrintRecipe print(app, "Print the program's options and validation metrics, as JSON, and exit",
                          {"--output", "--max-steps"});
  app.final_callback([&run, own, settings, print, metrics, may_change] {
    run = {settings->run.output,
           settings->recipe.max_steps.value_or(1),
           settings->run.checkpoints.keep.latest,
           settings->run.checkpoints.resume,
           settings->run.time_limit_seconds,
           values_of(own, may_change)};
    print.throw_if_called_for([&] {
      return json_lines(
          {{"metrics", std::vector<std::string>(metrics.begin(), metrics.end())}, {"options", values_of(own, {})}});
    });
  });
}

}  // namespace lockstep
