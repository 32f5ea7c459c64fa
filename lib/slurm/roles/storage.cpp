#include "slurm/roles/storage.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <system_error>

#include "base/error.hpp"
#include "base/text/printable.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

void replace_link(const fs::path& target, const fs::path& link) {
  std::error_code error;
  if (fs::read_symlink(link, error) == target) return;
  const bool is_other = fs::exists(fs::symlink_status(link, error)) && !fs::is_symlink(link, error);
  require(
      !is_other, Failure::usage,
      "'{}' exists and is not a link, so a storage of the job cannot have this name. Rename it, or submit the job in "
      "another folder.",
      printable(link.string()));
  const fs::path part = fmt::format("{}.{}", link.string(), ::getpid());
  fs::create_directories(link.parent_path(), error);
  if (!error) fs::create_symlink(target, part, error);
  if (!error) fs::rename(part, link, error);
  require(!error, Failure::usage,
          "cannot create the link '{}' to the storage '{}': {}. Submit the job in another folder.",
          printable(link.string()), printable(target.string()), error.message());
}

// `path` with another beginning, if it is `from` or within it.
fs::path moved(const fs::path& path, const fs::path& from, const fs::path& to) {
  const auto [in_path, in_from] = std::ranges::mismatch(path, from);
  if (in_from != from.end()) return path;
  fs::path result = to;
  for (auto part = in_path; part != path.end(); ++part) result /= *part;
  return result;
}

}  // namespace

bool is_storage_name(std::string_view name) {
  constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
  constexpr std::size_t longest = 64;
  return !name.empty() && name.size() <= longest && name.front() != '.' && name.find_first_not_of(letters) == name.npos;
}

std::string storage_variable(std::string_view name) {
  std::string variable = fmt::format("LOCKSTEP_STORAGE_{}", name);
  std::ranges::replace_if(
      variable, [](char letter) { return letter == '-' || letter == '.'; }, '_');
  return variable;
}

const std::string& visible_path(const Storage& storage) { return storage.mount.empty() ? storage.path : storage.mount; }

fs::path seen_by_commands(const std::vector<Storage>& storages, const fs::path& path) {
  for (const Storage& storage : storages) {
    const fs::path seen = moved(path, storage.path, visible_path(storage));
    if (seen != path) return seen;
  }
  return path;
}

fs::path path_on_nodes(const std::vector<Storage>& storages, const fs::path& path) {
  for (const Storage& storage : storages) {
    const fs::path real = moved(path, visible_path(storage), storage.path);
    if (real != path) return real;
  }
  return path;
}

void link_storages(const std::vector<Storage>& storages, const fs::path& folder) {
  for (const Storage& storage : storages) {
    if (storage.mount.empty()) replace_link(storage.path, folder / "storage" / storage.name);
  }
}

void require_storages(const std::vector<Storage>& storages, SeenFrom place, const std::string& host) {
  for (const Storage& storage : storages) {
    std::error_code error;
    require(fs::is_directory(storage.path, error), Failure::usage,
            "the storage '{0}' is '{1}', which is no folder on {2}. Correct storage.{0} in the site profile.",
            storage.name, printable(storage.path), host);
    if (place == SeenFrom::container || storage.mount.empty()) continue;
    require(fs::equivalent(storage.mount, storage.path, error), Failure::usage,
            "'{1}' is not the folder '{2}' of the storage '{0}' on {3}. Correct storage.{0} in the site profile.",
            storage.name, printable(storage.mount), printable(storage.path), host);
  }
}

}  // namespace lockstep
