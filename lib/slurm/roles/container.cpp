#include "slurm/roles/container.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <system_error>

#include "base/error.hpp"
#include "base/text/printable.hpp"
#include "slurm/roles/loaded_libraries.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

struct Mount {
  std::string from;  // on the node
  std::string to;    // in the container

  bool operator==(const Mount&) const = default;
};

[[noreturn]] void refuse(const Role& role, const std::string& what) {
  throw Error(Failure::usage, fmt::format("role '{}' cannot run in its container: {}.", role.name, what));
}

std::vector<Mount> mounts_of(const Role& role, const ContainerHost& host) {
  std::vector<Mount> mounts;
  const auto add = [&](const Mount& mount) {
    if (!is_mountable(mount.from)) {
      refuse(role, fmt::format("'{}' cannot be mounted, because its path has ',', ':', a quote, a backslash or a "
                               "control character. Rename the folder",
                               printable(mount.from)));
    }
    if (std::ranges::find(mounts, mount) == mounts.end()) mounts.push_back(mount);
  };
  add({host.folder, host.folder});
  add({host.programs, host.programs});
  for (const fs::path& folder : host.others) {
    std::error_code error;
    if (fs::is_directory(folder, error)) add({folder, folder});
  }
  for (const Storage& storage : role.storages) add({storage.path, visible_path(storage)});
  return mounts;
}

std::string mount_text(const Mount& mount) { return fmt::format("{}:{}", mount.from, mount.to); }

void require_image(const Role& role, const ContainerHost& host) {
  std::error_code error;
  const fs::file_status image = fs::status(role.container.image, error);
  if (!fs::exists(image)) {
    refuse(role, fmt::format("the image '{}' does not exist on {}. Correct 'image.NAME' in the site profile",
                             printable(role.container.image), host.name));
  }
  if (role.container.program == "charliecloud" && !fs::is_directory(image)) {
    refuse(role, fmt::format("the image '{}' is no folder, and Charliecloud runs unpacked images here. Unpack it with "
                             "ch-convert",
                             printable(role.container.image)));
  }
}

// Links of an image may be absolute, and lead elsewhere on the node.
void create_mount_point(const Role& role, const Mount& mount) {
  const fs::path image = fs::canonical(role.container.image);
  const fs::path point = fs::weakly_canonical(image / fs::path(mount.to).relative_path());
  std::error_code error;
  const bool is_within = std::ranges::mismatch(image, point).in1 == image.end();
  if (is_within) fs::create_directories(point, error);
  if (is_within && !error) return;
  refuse(role, fmt::format("the image '{}' has no folder '{}', where '{}' would be mounted, and it cannot be created "
                           "({}). Create it in the image",
                           printable(role.container.image), printable(mount.to), printable(mount.from),
                           is_within ? error.message() : "a link leads out of the image"));
}

std::vector<std::string> apptainer_words(const Role& role, const std::vector<Mount>& mounts) {
  std::vector<std::string> words = {"apptainer", "exec"};
  for (const Mount& mount : mounts) words.push_back("--bind=" + mount_text(mount));
  words.push_back("--pwd=" + mounts.front().to);
  if (role.gpus > 0) words.emplace_back("--nv");
  words.push_back(role.container.image);
  return words;
}

// The node's /tmp is the container's.
bool is_in_tmp(const Mount& mount) { return mount.to == mount.from && mount.to.starts_with("/tmp/"); }

std::vector<std::string> charliecloud_words(const Role& role, const std::vector<Mount>& mounts) {
  std::vector<std::string> words = {"ch-run"};
  for (const Mount& mount : mounts) {
    if (!is_in_tmp(mount)) create_mount_point(role, mount);
    words.push_back("--bind=" + mount_text(mount));
  }
  words.push_back("--cd=" + mounts.front().to);
  std::error_code error;
  const bool has_environment = fs::exists(fs::path(role.container.image) / "ch/environment", error);
  if (has_environment) words.emplace_back("--set-env");
  words.insert(words.end(), {role.container.image, "--"});
  return words;
}

}  // namespace

bool is_mountable(std::string_view path) {
  constexpr std::string_view separators = ",:\"\\";
  return path.starts_with('/') && path.find_first_of(separators) == path.npos && printable(path) == path;
}

std::vector<std::string> container_command(const Role& role, const ContainerHost& host) {
  std::vector<std::string> words;
  if (role.container.program != "pyxis") {
    require_image(role, host);
    const std::vector<Mount> mounts = mounts_of(role, host);
    words = role.container.program == "apptainer" ? apptainer_words(role, mounts) : charliecloud_words(role, mounts);
  }
  // Images set PATH themselves.
  constexpr const char* set_path = R"(export PATH="$0:$PATH"; exec "$@")";
  words.insert(words.end(), {"sh", "-c", set_path, host.programs.string()});
  words.insert(words.end(), role.command.begin(), role.command.end());
  return words;
}

std::vector<std::string> task_words(const Role& role, const ContainerHost& host, const std::string& program) {
  if (role.container.program != "pyxis") return {program};
  require_image(role, host);
  std::vector<std::string> mounts;
  for (const Mount& mount : mounts_of(role, host)) mounts.push_back(mount_text(mount));
  const LoadedLibraries libraries = loaded_libraries();
  std::vector<std::string> folders;
  for (const fs::path& folder : libraries.folders) {
    folders.push_back(fmt::format("/opt/lockstep/{}", folders.size()));
    mounts.push_back(mount_text({folder, folders.back()}));
  }
  const auto loader = std::ranges::find(libraries.folders, libraries.loader.parent_path()) - libraries.folders.begin();
  return {"--container-image=" + role.container.image,
          fmt::format("--container-mounts={}", fmt::join(mounts, ",")),
          "--container-workdir=" + host.folder.string(),
          fmt::format("/opt/lockstep/{}/{}", loader, libraries.loader.filename().string()),
          "--library-path",
          fmt::format("{}", fmt::join(folders, ":")),
          program};
}

Environment container_environment(const Role& role, const std::string& user) {
  if (role.container.program.empty()) return {};
  return {{"USER", user}, {"OMPI_MCA_btl_vader_single_copy_mechanism", "none"}};
}

}  // namespace lockstep
