#include "slurm/roles/training_folders.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace lockstep::training_folders_test {

TrainingFolders folders_of(const std::vector<std::vector<std::string>>& commands) {
  std::vector<Role> roles;
  for (const std::vector<std::string>& command : commands) roles.push_back({.name = "worker", .command = command});
  return training_folders(roles);
}
TrainingFolders folders_of_script(const std::string& script) { return folders_of({{"bash", "-c", script, "worker"}}); }

TEST(TrainingFoldersTest, a_command_without_a_shell_names_them) {
  const TrainingFolders known{"runs/r 20", "runs/r 20/checkpoints"};
  EXPECT_EQ(folders_of({{"server"}, {"train_cifar", "--data", "d", "--output", "runs/r 20"}}), known);
  EXPECT_EQ(folders_of({{"/opt/bin/train_imagenet", "--output=runs/r 20", "--epochs", "2"}}), known);
  EXPECT_EQ(folders_of({{"env", "-u", "SECRET", "A=b", "nice", "train_cifar", "--output", "runs/r 20"}}), known);
  EXPECT_EQ(folders_of({{"train_cifar", "--output", "runs/r 20"}, {"train_cifar", "--output", "runs/r 20"}}), known);
  EXPECT_EQ(folders_of({{"train_cifar", "--output", "runs/r 20"}, {"train_cifar", "--trainer-of", "elsewhere"}}),
            known);
  EXPECT_EQ(folders_of({{"train_cifar", "--output", "a", "--checkpoints", "/b"}}), (TrainingFolders{"a", "/b"}));
  EXPECT_EQ(folders_of({{"train_cifar", "--checkpoints", "/b"}}), (TrainingFolders{"", "/b"}));
}

TEST(TrainingFoldersTest, a_script_names_them) {
  for (const char* const script : {
           "echo begins; train_cifar --data d --output runs/r20\necho done",
           "set -e\nSEED=1 exec train_cifar --output=runs/r20 --epochs '2' >log 2>&1",
           "if ! train_cifar --data \"$DATA\" \\\n  --output 'runs'/\"r20\"; then echo failed; fi",
           "# it's a comment with --output x\n(train_cifar --output runs/r20 | tee log) && evaluate --output eval",
           "cat <(echo '--output x') && { srun -n $N train_cifar --output runs/r20; }",
           "bash -c 'train_cifar --output runs/r20'",
       }) {
    EXPECT_EQ(folders_of_script(script), (TrainingFolders{"runs/r20", "runs/r20/checkpoints"})) << script;
  }
  EXPECT_EQ(folders_of_script("cd data && train_cifar --output /r20").output, "/r20");
}

TEST(TrainingFoldersTest, a_folder_in_a_storage_is_told_as_the_nodes_know_it) {
  Role role{.name = "worker", .command = {"bash", "-c", "train_cifar --output /mnt/nfs/r20"}};
  role.storages = {{"nfs", "/gpfs/nfs", "/mnt/nfs"}};
  EXPECT_EQ(training_folders({role}), (TrainingFolders{"/gpfs/nfs/r20", "/gpfs/nfs/r20/checkpoints"}));
}

TEST(TrainingFoldersTest, nothing_is_guessed) {
  const TrainingFolders none;
  for (const char* const script : {
           "python train.py --output runs/r20",
           "echo train_cifar --output runs/r20",
           "echo 'train_cifar --output runs/r20'",
           "train_cifar --data d",
           "train_cifar --output",
           "cd data",
           "'",
           "\"",
           "\\",
       }) {
    EXPECT_EQ(folders_of_script(script), none) << script;
  }
  EXPECT_EQ(folders_of({{"bash", "-c"}, {"bash", "train_cifar"}, {"env"}}), none);
}

TEST(TrainingFoldersTest, folders_that_the_text_hides_are_unknown) {
  const TrainingFolders unknown{.output = {}, .checkpoints = {}, .is_unknown = true};
  for (const char* const script : {
           "train_cifar --output \"runs/$RUN\"",
           "train_cifar --output runs/$(date)",
           "train_cifar --output runs/`date`",
           "train_cifar --output ~/r20",
           "cd data && train_cifar --output runs/r20",
           "if cd data; then train_cifar --output runs/r20; fi",
           "{ cd data; train_cifar --output runs/r20; }",
           "for i in 1 2; do cd $i; train_cifar --output runs/r20; popd; done",
           "! pushd data || train_cifar --output runs/r20",
           "env -C data train_cifar --output runs/r20",
           "srun --chdir=data train_cifar --output runs/r20",
           "srun -D data train_cifar --output runs/r20",
           "mpirun -np 2 --wdir data train_cifar --output runs/r20",
           "bash -c 'cd data'; train_cifar --output runs/r20",
           "train_cifar --output runs/a; train_cifar --output runs/b",
       }) {
    EXPECT_EQ(folders_of_script(script), unknown) << script;
  }
  EXPECT_EQ(folders_of({{"bash", "-c", "cd a; server"}, {"train_cifar", "--output", "b"}}).output, "b")
      << "another role changes its folder";
}

}  // namespace lockstep::training_folders_test
