#include "launch/field_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/text/json_text.hpp"
#include "base/text/nearest_name.hpp"
#include "job/job_environment.hpp"
#include "network/onnx/onnx_network.hpp"
#include "recipe/fields.hpp"
#include "recipe/recipes.hpp"
#include "runtime/plan_file.hpp"

namespace lockstep {
namespace {

std::string shown_default(const Field& field, const Settings& settings) {
  std::string shown;
  for (const std::string& text : field.texts(settings)) shown += (shown.empty() ? "" : ",") + text;
  return field.form == Field::Form::list ? "[" + shown + "]" : shown;
}

template <typename Set>
CLI::Option* add_flag(CLI::App& app, const Field& field, const std::string& flags, const Set& set) {
  const std::string off = off_option(field);
  // CLI11 counts -1 for each name with an exclamation mark.
  const auto set_by_count = [set, on = field.name, off](std::int64_t count) {
    if (count == 0) throw CLI::ValidationError("--" + on, fmt::format("--{} says the opposite. Give one of them", off));
    set(count > 0 ? std::vector<std::string>{"true"} : std::vector<std::string>());
  };
  return app.add_flag_function(flags + (off.empty() ? "" : ",!--" + off), set_by_count, field.help);
}

CLI::Option* add_option(CLI::App& app, const Field& field, const std::string& flags, Settings& settings) {
  const auto set = [&field, &settings](const std::vector<std::string>& texts) { field.set(settings, texts); };
  switch (field.form) {
    case Field::Form::flag:
      return add_flag(app, field, flags, set);
    case Field::Form::one:
      return app.add_option_function<std::string>(
          flags, [set](const std::string& text) { set({text}); }, field.help);
    case Field::Form::list:
      break;
  }
  return app.add_option_function<std::vector<std::string>>(flags, set, field.help);
}

void declare(CLI::App& app, const Field& field, Settings& settings) {
  const std::string flags = "--" + field.name + (field.also.empty() ? "" : ",--" + field.also);
  CLI::Option* const option = add_option(app, field, flags, settings);
  if (field.form != Field::Form::flag) {
    option->check(CLI::Validator(field.validation_error, field.values, "value"))
        ->default_str(shown_default(field, settings))
        ->type_name(field.type_name);
  }
  if (field.separator != '\0') option->delimiter(field.separator);
  option->required(field.is_required);
  option->group(heading_of(field.group));
  if (!field.excludes.empty()) option->excludes(app.get_option("--" + field.excludes));
}

bool is_stated(const CLI::App& app, const std::string& name) { return app.count("--" + name) > 0; }

// Refuses options that have no effect, so that no user relies on one.
void refuse_unread(const CLI::App& app, const Settings& settings) {
  for (const Field& field : training_fields()) {
    const bool is_off = field.form == Field::Form::flag && field.texts(settings).empty();
    if (!is_stated(app, field.name) || is_off) continue;
    const std::string message = unused_option_message(field, settings);
    if (!message.empty()) throw CLI::ValidationError("--" + field.name, message);
  }
}

// What a trainer decides itself. All else is the server's, so that no user relies on it.
bool is_of_trainer(const Field& field) {
  using enum FieldGroup;
  const bool is_of_node = field.group == data || field.group == staging || field.group == device;
  return field.name == "trainer-of" || field.name == "hang-timeout" || (field.part == Field::Part::run && is_of_node);
}

void refuse_options_of_server(const CLI::App& app, const Settings& settings) {
  if (settings.run.trainer_of.empty()) return;
  std::vector<std::string> names = {"recipe"};
  for (const Field& field : training_fields()) {
    if (!is_of_trainer(field)) names.push_back(field.name);
  }
  for (const std::string& name : names) {
    if (!is_stated(app, name)) continue;
    throw CLI::ValidationError("--" + name, "a trainer does what its server says (--trainer-of). Leave it out");
  }
}

ValidSettings checked(const Settings& settings) {
  try {
    return ValidSettings(settings);
  } catch (const Error& error) {
    throw CLI::ValidationError(error.what());
  }
}

// Refuses an ONNX file that no training could read.
void require_network(const std::string& model) {
  if (!is_onnx_path(model)) return;
  try {
    read_onnx_network(model, {});
  } catch (const Error& error) {
    throw CLI::ValidationError(error.what());
  }
}

// Prints the recipe for --print-recipe: everything that determines the weights, in the form that a checkpoint stores.
class CallForRecipe final : public CLI::Success {
 public:
  explicit CallForRecipe(const std::string& text) : CLI::Success("CallForRecipe", text, CLI::ExitCodes::Success) {}
};

// Declares --recipe before the fields, so that explicit options override the recipe. After parsing, `usual` is the
// optimizer that the default learning rate is meant for.
void declare_recipe(CLI::App& app, Settings& settings, const std::shared_ptr<OptimizerKind>& usual) {
  const auto validation_error = [](const std::string& name) -> std::string {
    if (find_recipe(name) != nullptr) return "";
    std::vector<std::string> names;
    for (const PublishedRecipe& recipe : published_recipes()) names.emplace_back(recipe.name);
    return fmt::format("unknown recipe '{}'. {}Known: {}", name, did_you_mean(name, names), known_recipes());
  };
  app.add_option_function<std::string>(
         "--recipe",
         [&settings, usual](const std::string& name) {
           set_recipe(settings, *find_recipe(name));
           *usual = settings.recipe.optimizer.kind;
         },
         "Published recipe that replaces the defaults; other options override it, such as --no-nesterov: " +
             known_recipes())
      ->check(CLI::Validator(validation_error, known_recipes(), "recipe"))
      ->default_str("")
      ->type_name("NAME");
}

const char* usual_rates(OptimizerKind kind) {
  switch (kind) {
    case OptimizerKind::lars:
      return "from 1 to 10";
    case OptimizerKind::adamw:
      return "0.001";
    case OptimizerKind::muon:
      return "0.24, and --lr-scale for parameters with SGD";
    case OptimizerKind::sgd:
      break;
  }
  return "0.1";
}

// A learning rate that suits one optimizer is far off for another.
void require_own_rate(const CLI::App& app, OptimizerKind usual, const Settings& settings) {
  const OptimizerKind chosen = settings.recipe.optimizer.kind;
  if (chosen == usual || is_stated(app, "lr")) return;
  throw CLI::ValidationError(
      "--optimizer",
      fmt::format("this optimizer needs its own learning rate. Set --lr (often {})", usual_rates(chosen)));
}

}  // namespace

void declare_recipe(CLI::App& app, Settings& settings) {
  declare_recipe(app, settings, std::make_shared<OptimizerKind>(settings.recipe.optimizer.kind));
}

void declare_fields(CLI::App& app, Settings& settings, std::initializer_list<FieldGroup> groups) {
  settings.run.device.plan_folder = default_plan_folder(this_job());
  for (const Field& field : training_fields()) {
    if (std::ranges::find(groups, field.group) != groups.end()) declare(app, field, settings);
  }
}

void declare_fields(CLI::App& app, Settings& settings, std::initializer_list<std::string_view> names) {
  for (const Field& field : training_fields()) {
    if (std::ranges::find(names, field.name) != names.end()) declare(app, field, settings);
  }
}

PrintRecipe::PrintRecipe(CLI::App& app, const char* help, std::initializer_list<const char*> needed_to_run)
    : option_(app.add_flag_callback(
          "--print-recipe",
          [&app, names = std::vector<std::string>(needed_to_run.begin(), needed_to_run.end())] {
            for (const std::string& name : names) app.get_option(name)->required(false);
          },
          help)) {}

void PrintRecipe::throw_if_called_for(const std::function<std::string()>& text) const {
  if (option_->count() > 0) throw CallForRecipe(text());
}

void declare_training(CLI::App& app, Settings& settings, std::optional<ValidSettings>& valid) {
  using enum FieldGroup;
  const auto usual = std::make_shared<OptimizerKind>(settings.recipe.optimizer.kind);
  declare_recipe(app, settings, usual);
  declare_fields(app, settings,
                 {data, staging, augmentation, resizing, testing, model, optimizer, schedule, device, batch, sync,
                  reduction, output, checkpoints, monitoring});
  // A trainer reads the server's data unless it is given a copy.
  app.get_option("--trainer-of")->each([&app](const std::string&) { app.get_option("--data")->required(false); });
  // --print-recipe needs no data. It refuses everything else that a training would refuse.
  const PrintRecipe print(app, "Print the recipe that results from all options, as JSON, and exit", {"--data"});
  app.final_callback([&app, &settings, &valid, usual, print] {
    refuse_options_of_server(app, settings);
    refuse_unread(app, settings);
    require_own_rate(app, *usual, settings);
    valid = checked(settings);
    print.throw_if_called_for([&] {
      require_network(settings.recipe.model);
      return json_lines(json_of(Settings{valid->recipe(), valid->run()}, Field::Part::recipe));
    });
  });
}

}  // namespace lockstep
