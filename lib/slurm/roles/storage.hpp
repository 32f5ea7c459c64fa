// Storages: folders of the cluster that a role's commands use under a name, as on OpenPAI.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

struct Storage {
  std::string name{};   // is_storage_name()
  std::string path{};   // of the folder on the nodes; absolute
  std::string mount{};  // where commands expect it: mounted in a container, else a folder of the nodes; empty: nowhere
};

// The storage of PAI_DEFAULT_FS_URI.
inline constexpr const char* default_storage = "default";

// 1 to 64 letters, digits, '_', '-' and '.', with no '.' first: also the name of a link.
bool is_storage_name(std::string_view name);
// The variable that has its path: LOCKSTEP_STORAGE_confignfs. '-' and '.' become '_'.
std::string storage_variable(std::string_view name);
// The path that commands use.
const std::string& visible_path(const Storage& storage);
// What a role's commands call `path`, for a path of the nodes, and the inverse. Other paths are returned as they are.
std::filesystem::path seen_by_commands(const std::vector<Storage>& storages, const std::filesystem::path& path);
std::filesystem::path path_on_nodes(const std::vector<Storage>& storages, const std::filesystem::path& path);

// Links `folder`/storage/NAME to each storage without `mount`. Replaces earlier links. Throws Error(usage) if something
// else has that name.
void link_storages(const std::vector<Storage>& storages, const std::filesystem::path& folder);

enum class SeenFrom : bool { node, container };
// Throws Error(usage) that names `host` if a folder is missing there, or if `mount` is another folder on the node.
void require_storages(const std::vector<Storage>& storages, SeenFrom place, const std::string& host);

}  // namespace lockstep
