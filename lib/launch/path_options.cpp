#include "launch/path_options.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>

namespace lockstep {
namespace {

constexpr std::array<std::string_view, 4> path_types = {"FILE", "FOLDER", "DIR", "PATH"};

bool has_check(CLI::Option& option) try {
  constexpr int first = 0;
  option.get_validator(first);
  return true;
} catch (const CLI::OptionNotFound&) {
  return false;
}

std::vector<std::string> types_of(const CLI::Option& option) {
  return CLI::detail::split(option.get_type_name(), '|');  // "auto|never|FILE"
}

}  // namespace

bool names_path(const CLI::Option& option) {
  const std::vector<std::string> types = types_of(option);
  return std::ranges::find_first_of(types, path_types) != types.end();
}

void refuse_empty_paths(CLI::App& app) {
  const auto check = [](const std::string& path) -> std::string {
    return path.empty() ? "'' is not the name of a file or folder (is a variable unset?)" : "";
  };
  for (CLI::Option* option : app.get_options()) {
    if (names_path(*option) && !has_check(*option)) option->check(CLI::Validator(check, "", "path"));
  }
  for (CLI::App* command : app.get_subcommands({})) refuse_empty_paths(*command);
}

std::vector<StatedPath> stated_paths(const CLI::App& app) {
  std::vector<StatedPath> paths;
  for (const CLI::Option* option : app.get_options()) {
    if (!names_path(*option)) continue;
    const std::vector<std::string> types = types_of(*option);
    const bool is_file = std::ranges::find(types, "FILE") != types.end();
    for (const std::string& path : option->results()) paths.push_back({option->get_name(), path, is_file});
  }
  for (const CLI::App* command : app.get_subcommands()) {
    std::ranges::move(stated_paths(*command), std::back_inserter(paths));
  }
  return paths;
}

}  // namespace lockstep
