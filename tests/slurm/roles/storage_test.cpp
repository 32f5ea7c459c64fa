#include "slurm/roles/storage.hpp"

#include <gtest/gtest.h>

#include "base/io/file.hpp"
#include "support/messages.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::storage_test {

namespace fs = std::filesystem;

TEST(StorageTest, a_name_is_a_link_and_a_variable) {
  for (const char* name : {"confignfs", "nfs-1.data", "_A"}) EXPECT_TRUE(is_storage_name(name)) << name;
  for (const std::string& name :
       {std::string(), std::string(".."), std::string("a/b"), std::string("a b"), std::string(65, 'a')}) {
    EXPECT_FALSE(is_storage_name(name)) << name;
  }
  EXPECT_EQ(storage_variable("nfs-1.data"), "LOCKSTEP_STORAGE_nfs_1_data");
}

TEST(StorageTest, paths_are_told_as_the_commands_and_as_the_nodes_know_them) {
  const std::vector<Storage> storages = {{"a", "/gpfs/a", "/mnt/a"}, {"b", "/gpfs/b", ""}};
  EXPECT_EQ(path_on_nodes(storages, "/mnt/a/runs/r 1"), "/gpfs/a/runs/r 1");
  EXPECT_EQ(seen_by_commands(storages, "/gpfs/a/runs/r 1"), "/mnt/a/runs/r 1");
  for (const char* path : {"/mnt/ab", "/mnt", "runs/x", "/gpfs/b/x", ""}) {
    EXPECT_EQ(path_on_nodes(storages, path), path);
    EXPECT_EQ(seen_by_commands(storages, path), path);
  }
}

TEST(StorageTest, a_link_leads_to_each_storage_without_a_mount) {
  const TemporaryFolder folder;
  const auto link = [&](const std::string& path) {
    link_storages({{"a", path, ""}, {"b", path, path}}, folder.path());
  };
  for (const char* path : {"/gpfs/first", "/gpfs/first", "/gpfs/second"}) {
    link(path);
    EXPECT_EQ(fs::read_symlink(folder.path() / "storage/a"), path);
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path() / "storage"), fs::directory_iterator()), 1);
  fs::remove(folder.path() / "storage/a");
  write_file_atomically(folder.path() / "storage/a", std::string_view("the user's"));
  expect_error(Failure::usage, {"storage/a'"}, [&] { link("/gpfs/first"); });
  fs::remove_all(folder.path() / "storage");
  write_file_atomically(folder.path() / "storage", std::string_view("the user's"));
  expect_error(Failure::usage, {"storage/a'"}, [&] { link("/gpfs/first"); });
}

TEST(StorageTest, a_folder_that_a_node_lacks_is_named) {
  const TemporaryFolder folder;
  const fs::path real = folder.path() / "real";
  const fs::path other = folder.path() / "other";
  const std::vector<Storage> mounted = {{"nfs", real.string(), (folder.path() / "mount").string()}};
  expect_error(Failure::usage, {real.string(), "storage.nfs", "n7"},
               [&] { require_storages(mounted, SeenFrom::container, "n7"); });
  fs::create_directory(real);
  fs::create_directory(other);
  require_storages(mounted, SeenFrom::container, "n7");
  require_storages({{"nfs", real.string(), ""}}, SeenFrom::node, "n7");
  expect_error(Failure::usage, {mounted[0].mount, real.string(), "n7"},
               [&] { require_storages(mounted, SeenFrom::node, "n7"); });
  fs::create_symlink(other, mounted[0].mount);
  expect_error(Failure::usage, {mounted[0].mount, real.string(), "n7"},
               [&] { require_storages(mounted, SeenFrom::node, "n7"); });
  fs::remove(mounted[0].mount);
  fs::create_symlink(real, mounted[0].mount);
  require_storages(mounted, SeenFrom::node, "n7");
}

}  // namespace lockstep::storage_test
