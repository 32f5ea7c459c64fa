#include "launch/field_options.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "job/job_environment.hpp"
#include "recipe/fields.hpp"
#include "runtime/plan_file.hpp"

namespace lockstep {
namespace {

std::string shown_default(const Field& field, const Settings& settings) {
  std::string shown;
  for (const std::string& text : field.texts(settings)) shown += (shown.empty() ? "" : ",") + text;
  return field.form == Field::Form::list ? "[" + shown + "]" : shown;
}

CLI::Option* add_option(CLI::App& app, const Field& field, const std::string& flags, Settings& settings) {
  const auto set = [&field, &settings](const std::vector<std::string>& texts) { field.set(settings, texts); };
  switch (field.form) {
    case Field::Form::flag:
      return app.add_flag_callback(
          flags, [set] { set({"true"}); }, field.help);
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
    option->check(CLI::Validator(field.objection, field.values, "value"))
        ->default_str(shown_default(field, settings))
        ->type_name(field.type_name);
  }
  option->required(field.is_required);
  if (!field.excludes.empty()) option->excludes(app.get_option("--" + field.excludes));
  if (!field.needs.empty()) option->needs(app.get_option("--" + field.needs));
}

}  // namespace

void declare_fields(CLI::App& app, Settings& settings, std::initializer_list<FieldGroup> groups) {
  settings.run.device.plan_folder = default_plan_folder(this_job());
  for (const Field& field : training_fields()) {
    if (std::ranges::find(groups, field.group) != groups.end()) declare(app, field, settings);
  }
}

void declare_training(CLI::App& app, Settings& settings) {
  using enum FieldGroup;
  declare_fields(app, settings, {data, model, batch, optimizer, schedule, device, sums, output, watch, checkpoints});
}

}  // namespace lockstep
