#include "slurm/submit/job_storages.hpp"

#include <gtest/gtest.h>

#include <filesystem>

#include "slurm/submit/job_file.hpp"
#include "support/messages.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::job_storages_test {

namespace fs = std::filesystem;

// A job with these extras, whose role runs `command`, in a container if the profile has one.
Role role_of(const SiteProfile& site, const std::string& extras, const std::string& command = "x") {
  const std::string text =
      "protocolVersion: 2\nname: a\ntype: job\nprerequisites: [{type: dockerimage, name: i}]\ntaskRoles: {worker: "
      "{dockerImage: i, resourcePerInstance: {cpu: 1}, commands: ['" +
      command + "']}}\nextras: {" + extras + "}\n";
  return parse_job_file(text, "job.yaml", {}, site).roles.at(0);
}
const std::string plugin = "com.microsoft.pai.runtimeplugin: [{plugin: teamwise_storage";

TEST(JobStoragesTest, paths_are_found_in_scripts) {
  for (const char* script :
       {"/mnt/a", "ls /mnt/a/b", "--data=/mnt/a", "x '/mnt/a'", "file:///mnt/a/x", "ls /mnt/ab /mnt/a"}) {
    EXPECT_TRUE(names_path(script, "/mnt/a")) << script;
  }
  for (const char* script :
       {"", "/mnt/ab", "/mnt/a-b", "x/mnt/a", "$HOME/mnt/a", "${HOME}/mnt/a", "./mnt/a", "a//mnt/a"}) {
    EXPECT_FALSE(names_path(script, "/mnt/a")) << script;
  }
}

TEST(JobStoragesTest, in_a_container_a_storage_is_mounted_where_the_file_says) {
  const SiteProfile site{"apptainer", {{"i", "/images/i.sif"}}, {{"a", "/gpfs/a"}, {"default", "/gpfs/pai"}}};
  const Role role = role_of(site, "storages: [{name: a, mountPath: /data}]", "ls /data /mnt/a");
  EXPECT_EQ(role.container, (Container{"apptainer", "/images/i.sif"}));
  ASSERT_EQ(role.storages.size(), 2U);
  EXPECT_EQ(role.storages[0].mount, "/data");
  EXPECT_EQ(role.storages[1].name, "default");
  EXPECT_EQ(role.storages[1].mount, "/gpfs/pai");
  for (const std::string& extras :
       {plugin + "}]", plugin + ", parameters: {storageConfigNames: []}}]", std::string("storages: []")}) {
    const Role other = role_of(site, extras);
    ASSERT_EQ(other.storages.size(), 1U) << extras;
    EXPECT_EQ(other.storages[0].mount, "/mnt/default") << extras;
  }
}

TEST(JobStoragesTest, a_storage_that_is_named_twice_is_one) {
  const SiteProfile site{"", {}, {{"a", "/mnt/a"}}};
  EXPECT_EQ(
      role_of(site, plugin + ", parameters: {storageConfigNames: [a, a]}}], storages: [{name: a}]").storages.size(),
      1U);
}

TEST(JobStoragesTest, without_a_container_the_mount_path_may_be_a_link) {
  const TemporaryFolder folder;
  const std::string mount = folder.path() / "mount";
  fs::create_directory(folder.path() / "real");
  const SiteProfile site{"", {}, {{"a", folder.path() / "real"}}};
  const std::string extras = "storages: [{name: a, mountPath: " + mount + "}]";
  expect_error(Failure::usage, {"'worker'", mount, "storage.a=" + mount, "LOCKSTEP_STORAGE_a"},
               [&] { role_of(site, extras, "ls " + mount); });
  EXPECT_EQ(role_of(site, extras, "ls elsewhere").storages.at(0).mount, "");
  fs::create_symlink(folder.path() / "real", mount);
  EXPECT_EQ(role_of(site, extras, "ls " + mount).storages.at(0).mount, mount);
}

TEST(JobStoragesTest, each_mistake_is_named) {
  const SiteProfile site{"", {}, {{"a", "/gpfs/a"}}};
  const auto refused = [&](const std::string& extras, Subjects subjects,
                           const std::source_location& where = std::source_location::current()) {
    expect_error(
        Failure::usage, subjects, [&] { role_of(site, extras); }, where);
  };
  refused("storages: [{name: b}]", {"'b'", "storage.b=", "line 6"});
  refused("storages: [{name: ../a}]", {"'../a'"});
  refused("storages: [{mountPath: /data}]", {"'name'"});
  refused("storages: [{name: a, mountPath: data}]", {"'mountPath'"});
  refused("storages: [{name: a, path: /data}]", {"'path'", "mountPath"});
  refused("storages: []", {"'default'", "storage.default="});
  refused(plugin + ", parameters: {storageConfigNames: a}}]", {"storageConfigNames"});
  refused(plugin + ", parameters: {names: [a]}}]", {"'names'", "storageConfigNames"});
}

}  // namespace lockstep::job_storages_test
