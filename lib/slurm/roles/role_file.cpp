#include "slurm/roles/role_file.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string_view>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/text/json_text.hpp"
#include "base/text/printable.hpp"
#include "slurm/roles/role_json.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::json;

constexpr std::size_t file_limit_bytes = std::size_t{64} << 20;
constexpr int roles_nesting = 5;  // an object: the list of roles, a role, its list of words, a word

std::vector<Role> roles_in(const Json& content) {
  require(content.is_object() && content.value("format", Json()) == Json(1), Failure::usage,
          "the field 'format' is not 1");
  for (const auto& [name, field] : content.items()) {
    require(name == "format" || name == "roles", Failure::usage, "it has the unknown field '{}'", printable(name));
  }
  return roles_of(content);
}

}  // namespace

std::string roles_text(const std::vector<Role>& roles) {
  return json_lines({{"format", 1}, {"roles", roles_json(roles)}}) + '\n';
}

std::vector<Role> parse_roles(const std::string& text, const std::string& name) {
  try {
    return roles_in(parse_shallow_json(text, roles_nesting));
  } catch (const Error& error) {
    std::string_view what = error.what();
    if (what.ends_with('.')) what.remove_suffix(1);
    throw Error(Failure::usage, fmt::format("'{}' is not a valid role file: {}. See slurm/roles.md for the format.",
                                            printable(name), what));
  }
}

std::vector<Role> read_roles(const std::filesystem::path& file) {
  return parse_roles(read_file(file, file_limit_bytes), file.string());
}

}  // namespace lockstep
