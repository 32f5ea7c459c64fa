#include "slurm/roles/container.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/io/file.hpp"
#include "slurm/roles/placement.hpp"
#include "support/messages.hpp"
#include "support/program.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::container_test {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* set_path = R"(export PATH="$0:$PATH"; exec "$@")";

class ContainerTest : public testing::Test {
 protected:
  ContainerTest() {
    fs::create_directory(image());
    host.name = "n7";
    host.folder = folder.path() / "a job";
    host.programs = "/opt/lockstep/bin";
    host.others = {folder.path() / "no such folder", folder.path()};
    fs::create_directory(host.folder);
  }
  fs::path image() const { return folder.path() / "image"; }
  Role role(const std::string& program) const {
    Role one{.name = "worker", .command = {"bash", "-c", "echo $x", "worker"}};
    one.container = {program, image().string()};
    one.storages = {{"nfs", "/gpfs/nfs", "/mnt/nfs"}, {"default", "/gpfs/pai", ""}};
    return one;
  }
  std::string own(const char* option, const fs::path& path) const {
    return option + path.string() + ":" + path.string();
  }
  void refused(const Role& one, Subjects subjects,
               const std::source_location& where = std::source_location::current()) const {
    expect_error(
        Failure::usage, subjects, [&] { container_command(one, host); }, where);
  }

  TemporaryFolder folder;
  ContainerHost host;
};

TEST_F(ContainerTest, apptainer_gets_folders_and_the_command_word_by_word) {
  Role one = role("apptainer");
  one.gpus = 2;
  EXPECT_THAT(container_command(one, host),
              ElementsAre("apptainer", "exec", own("--bind=", host.folder), own("--bind=", host.programs),
                          own("--bind=", folder.path()), "--bind=/gpfs/nfs:/mnt/nfs", "--bind=/gpfs/pai:/gpfs/pai",
                          "--pwd=" + host.folder.string(), "--nv", image().string(), "sh", "-c", set_path,
                          "/opt/lockstep/bin", "bash", "-c", "echo $x", "worker"));
}

TEST_F(ContainerTest, charliecloud_gets_the_images_environment_and_its_mount_points) {
  const Role one = role("charliecloud");
  EXPECT_THAT(container_command(one, host),
              ElementsAre("ch-run", own("--bind=", host.folder), own("--bind=", host.programs),
                          own("--bind=", folder.path()), "--bind=/gpfs/nfs:/mnt/nfs", "--bind=/gpfs/pai:/gpfs/pai",
                          "--cd=" + host.folder.string(), image().string(), "--", "sh", "-c", set_path,
                          "/opt/lockstep/bin", "bash", "-c", "echo $x", "worker"));
  for (const char* point : {"mnt/nfs", "gpfs/pai", "opt/lockstep/bin"}) EXPECT_TRUE(fs::is_directory(image() / point));
  fs::create_directory(image() / "ch");
  write_file_atomically(image() / "ch/environment", std::string_view("PATH=/opt/conda/bin\n"));
  EXPECT_THAT(container_command(one, host), testing::Contains("--set-env"));
}

TEST_F(ContainerTest, the_programs_come_first_in_the_path_of_a_command) {
  Role one = role("pyxis");
  one.command = {"printenv", "PATH"};
  const ProgramResult result = run_program(container_command(one, host), {{"PATH", "/usr/bin:/bin"}});
  EXPECT_EQ(result.output, "/opt/lockstep/bin:/usr/bin:/bin\n") << result.errors;
}

TEST_F(ContainerTest, pyxis_starts_the_task_itself_with_the_nodes_libraries) {
  const std::vector<Role> roles = {role("pyxis")};
  const std::vector<std::string> words =
      srun_arguments(steps_of(roles).at(0), roles, {{0, "n7"}}, "pmix", built_program("start_instance"), host);
  ASSERT_GE(words.size(), 7U);
  const std::vector<std::string> end(words.end() - 7, words.end());
  const std::string own_mounts = own("", host.folder) + "," + own("", host.programs) + "," + own("", folder.path());
  EXPECT_EQ(end[0], "--container-image=" + image().string());
  EXPECT_THAT(end[1],
              testing::StartsWith("--container-mounts=" + own_mounts + ",/gpfs/nfs:/mnt/nfs,/gpfs/pai:/gpfs/pai,/"));
  EXPECT_THAT(end[1], HasSubstr(":/opt/lockstep/0"));
  EXPECT_EQ(end[2], "--container-workdir=" + host.folder.string());
  EXPECT_THAT(end[3], testing::MatchesRegex("/opt/lockstep/[0-9]+/ld-.*"));
  EXPECT_EQ(end[4], "--library-path");
  EXPECT_THAT(end[5], testing::StartsWith("/opt/lockstep/0"));
  EXPECT_EQ(end[6], built_program("start_instance"));
}

TEST_F(ContainerTest, what_cannot_run_is_told_with_the_remedy) {
  for (const char* program : {"apptainer", "charliecloud"}) {
    Role one = role(program);
    one.container.image = "/images/no such.sif";
    refused(one, {"worker", one.container.image, "n7"});
  }
  Role file = role("charliecloud");
  file.container.image = folder.path() / "image.sqfs";
  write_file_atomically(file.container.image, std::string_view("hsqs"));
  refused(file, {file.container.image, "ch-convert"});
  fs::create_directory_symlink("/", image() / "mnt");
  refused(role("charliecloud"), {image().string(), "'/mnt/nfs'", "'/gpfs/nfs'"});
  host.folder = folder.path() / "a:b";
  refused(role("apptainer"), {"a:b"});
}

TEST_F(ContainerTest, a_missing_image_of_pyxis_is_found_before_srun_starts) {
  Role one = role("pyxis");
  one.container.image = "/images/no such.sqsh";
  expect_error(Failure::usage, {one.container.image}, [&] { task_words(one, host, "start"); });
  EXPECT_THAT(task_words(role("apptainer"), host, "start"), ElementsAre("start"));
}

TEST_F(ContainerTest, only_containers_need_variables) {
  EXPECT_TRUE(container_environment({.name = "worker"}, "ada").empty());
  EXPECT_EQ(container_environment(role("charliecloud"), "ada").at("USER"), "ada");
}

TEST(MountableTest, separators_of_mount_options_are_refused) {
  for (const char* path : {"/", "/a b/it's", "/\xc3\xa4"}) EXPECT_TRUE(is_mountable(path)) << path;
  for (const char* path : {"", "a", "/a:b", "/a,b", "/a\"b", "/a\\b", "/a\nb"})
    EXPECT_FALSE(is_mountable(path)) << path;
}

}  // namespace lockstep::container_test
