#include "launch/result_options.hpp"

#include <system_error>
#include <vector>

#include "base/error.hpp"
#include "launch/path_options.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr const char* check_name = "place of a result";

// The check is inactive, so that CLI11 does not run it: it accesses files, which only one rank may do. Null for other
// options.
CLI::Validator* place_check(CLI::Option& option) try {
  return option.get_validator(check_name);
} catch (const CLI::OptionNotFound&) {
  return nullptr;
}

bool names_input(CLI::Option& option) { return place_check(option) == nullptr && names_path(option); }

// Hard and symbolic links to a file count as that file.
bool is_same_file(const fs::path& one, const fs::path& other) {
  std::error_code absent;
  if (fs::equivalent(one, other, absent)) return true;
  const auto whole = [](const fs::path& path) {
    std::error_code unknown;
    return fs::weakly_canonical(fs::absolute(path, unknown), unknown);
  };
  const fs::path path = whole(one);
  return !path.empty() && path == whole(other);
}

std::vector<StatedPath> stated_files(CLI::App& app, const std::function<bool(CLI::Option&)>& counts) {
  std::vector<StatedPath> files;
  for (CLI::Option* option : app.get_options()) {
    if (!counts(*option)) continue;
    for (const std::string& path : option->results()) files.push_back({option->get_name(), path});
  }
  return files;
}

void require_other_files(const StatedPath& result, const std::vector<StatedPath>& inputs) {
  for (const StatedPath& input : inputs) {
    require(
        !is_same_file(result.path, input.path), Failure::usage,
        "'{}' of {} is the same file as '{}' of {}. The result would overwrite its input. Choose another file for {}.",
        result.path.string(), result.option, input.path.string(), input.option, result.option);
  }
}

void require_distinct(const std::vector<StatedPath>& results) {
  for (auto one = results.begin(); one != results.end(); ++one) {
    for (auto other = results.begin(); other != one; ++other) {
      require(!is_same_file(one->path, other->path), Failure::usage,
              "'{}' of {} is the same file as '{}' of {}. One result would overwrite the other. Choose two different "
              "files.",
              one->path.string(), one->option, other->path.string(), other->option);
    }
  }
}

std::vector<StatedPath> stated_results(CLI::App& app) {
  return stated_files(app, [](CLI::Option& option) { return place_check(option) != nullptr; });
}

}  // namespace

CLI::Option* add_result(CLI::App& app, const std::string& flag, fs::path& target, const PlaceCheck& require_place,
                        const std::string& help) {
  const auto check = [flag, require_place](const std::string& path) {
    require(!path.empty(), Failure::usage, "{} has an empty file name. Set a file, or remove {}.", flag, flag);
    require_place(path);
    return std::string();
  };
  return app.add_option(flag, target, help)
      ->check(CLI::Validator(check, "", check_name).active(false))
      ->type_name("FILE");
}

void require_distinct_files(CLI::App& app) {
  const std::vector<StatedPath> results = stated_results(app);
  const std::vector<StatedPath> inputs = stated_files(app, names_input);
  for (const StatedPath& result : results) require_other_files(result, inputs);
  require_distinct(results);
}

void require_places_for_results(CLI::App& app) {
  require_distinct_files(app);
  for (const StatedPath& result : stated_results(app)) {
    CLI::Validator check = *place_check(*app.get_option(result.option));
    check.active(true)(result.path.string());
  }
}

}  // namespace lockstep
