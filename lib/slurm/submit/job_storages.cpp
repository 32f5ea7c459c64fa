#include "slurm/submit/job_storages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "base/text/printable.hpp"
#include "slurm/roles/container.hpp"
#include "slurm/submit/shell_text.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

void add(const JobReader& reader, const SiteProfile& site, const Storage& storage, int line,
         std::vector<Storage>& storages) {
  if (!is_storage_name(storage.name)) {
    reader.refuse(line, fmt::format("'{}' is not a valid storage name. Use letters, digits, '_', '-' and '.'",
                                    printable(storage.name)));
  }
  const auto path = site.storages.find(storage.name);
  if (path == site.storages.end()) {
    reader.refuse(line,
                  fmt::format("the storage '{0}' is unknown. Add storage.{0}=/path/of/its/folder to the site profile",
                              storage.name));
  }
  if (std::ranges::find(storages, storage.name, &Storage::name) != storages.end()) return;
  storages.push_back({storage.name, path->second, storage.mount});
}

std::string default_mount(const std::string& name) { return "/mnt/" + name; }

bool is_same_folder(const Storage& storage) {
  std::error_code error;
  return fs::path(storage.mount).lexically_normal() == fs::path(storage.path).lexically_normal() ||
         fs::equivalent(storage.mount, storage.path, error);
}

}  // namespace

void read_storage_plugin(JobReader& reader, const SiteProfile& site, const YamlValue& plugin,
                         std::vector<Storage>& storages) {
  std::vector<YamlValue> names;
  if (const YamlValue* const parameters = find_value(plugin, "parameters")) {
    reader.check_fields(*parameters, job_fields::storage_plugin(), "the plugin teamwise_storage");
    const YamlValue* const list = find_value(*parameters, "storageConfigNames");
    if (list != nullptr) names = reader.list(*list, "storageConfigNames");
  }
  for (const YamlValue& one : names) {
    const std::string& name = reader.text(one, "a storage's name");
    add(reader, site, {.name = name, .mount = default_mount(name)}, one.line, storages);
  }
  if (names.empty()) {
    add(reader, site, {.name = default_storage, .mount = default_mount(default_storage)}, plugin.line, storages);
  }
}

void read_storage_list(JobReader& reader, const SiteProfile& site, const YamlValue& list,
                       std::vector<Storage>& storages) {
  for (const YamlValue& one : reader.list(list, "storages")) {
    reader.check_fields(one, job_fields::storage(), "a storage");
    const YamlValue* const name = find_value(one, "name");
    if (name == nullptr) reader.refuse(one.line, "a storage has no 'name'");
    Storage storage{.name = reader.text(*name, "a storage's name")};
    const YamlValue* const mount = find_value(one, "mountPath");
    storage.mount = mount == nullptr ? default_mount(storage.name) : reader.text(*mount, "mountPath");
    if (!is_mountable(storage.mount)) {
      reader.refuse(one.line, "'mountPath' is not an absolute path without ',', ':', quotes and backslashes");
    }
    add(reader, site, storage, one.line, storages);
  }
  if (list.items.empty()) {
    add(reader, site, {.name = default_storage, .mount = default_mount(default_storage)}, list.line, storages);
  }
}

std::vector<Storage> storages_of_role(const JobReader& reader, const SiteProfile& site,
                                      const std::vector<Storage>& storages, const Role& role, const std::string& script,
                                      const References& references, int line) {
  std::vector<Storage> own = storages;
  for (Storage& storage : own) {
    if (!role.container.program.empty() || is_same_folder(storage)) continue;
    const bool is_named =
        names_path(script, storage.mount) || std::ranges::any_of(references.values, [&](const auto& reference) {
          const References::Value& value = reference.second;
          return names_variable(script, value.variable) && names_path(value.text, storage.mount);
        });
    if (is_named) {
      reader.refuse(line,
                    fmt::format("the commands of the role '{0}' name '{1}', but without a container, the storage "
                                "'{2}' is '{3}'. Write ${4}, or storage/{2} in the job's folder. If the nodes have "
                                "'{1}', set storage.{2}={1} in the site profile",
                                role.name, storage.mount, storage.name, storage.path, storage_variable(storage.name)));
    }
    storage.mount.clear();
  }
  const auto shared = site.storages.find(default_storage);
  const bool is_there = std::ranges::find(own, default_storage, &Storage::name) != own.end();
  if (shared != site.storages.end() && !is_there) own.push_back({default_storage, shared->second, shared->second});
  return own;
}

bool names_path(std::string_view script, std::string_view path) {
  constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
  const auto is_letter = [&](char letter) { return letters.find(letter) != letters.npos; };
  for (std::size_t at = script.find(path); at != script.npos; at = script.find(path, at + 1)) {
    const std::size_t end = at + path.size();
    const std::size_t before = script.find_last_not_of('/', at == 0 ? script.npos : at - 1);
    const bool is_relative = at > 0 && before != script.npos && (is_letter(script[before]) || script[before] == '}');
    if (!is_relative && (end == script.size() || !is_letter(script[end]))) return true;
  }
  return false;
}

}  // namespace lockstep
