// On any number of ranks: copies are whole or absent, made once, and taken again.
#include "dataset/staging/stage.hpp"

#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <map>

#include "dataset/dataset.hpp"
#include "dataset/staging/shard_copy.hpp"
#include "support/messages.hpp"
#include "support/no_room.hpp"
#include "support/samples/small_data_set.hpp"
#include "support/special_files.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::stage_test {

namespace fs = std::filesystem;

class StageTest : public testing::Test {
 protected:
  StageTest() {
    // All ranks work in rank 0's folder.
    folder_ = world_.broadcast(own_.path().string(), 0);
    if (world_.rank() == 0) {
      write_small_data_set(folder_ / "data" / "train", {8, 8, 3}, 60, 7);
      write_small_data_set(folder_ / "data" / "test", {8, 8, 3}, 20, 9);
    }
    world_.barrier();
    options_ = {split_folders(folder_ / "data"), {Split::train, Split::validation, Split::test}, folder_ / "local"};
  }
  ~StageTest() override { world_.barrier(); }

  SplitFolders stage_all() const {
    return stage(world_, options_, [] {});
  }
  // What fails does so on one rank, and the others wait for the job's end: these are tests of one.
  SplitFolders stage_alone() const {
    return stage(alone_, options_, [] {});
  }

  static std::string content(const fs::path& file) { return read_file(file, 1 << 24); }
  // The name and inode of each file under the copies.
  std::map<std::string, ino_t> files() const {
    std::map<std::string, ino_t> found;
    for (const auto& entry : fs::recursive_directory_iterator(options_.folder)) {
      struct stat status {};
      EXPECT_EQ(::lstat(entry.path().c_str(), &status), 0);
      if (!entry.is_directory()) found[fs::relative(entry.path(), options_.folder).string()] = status.st_ino;
    }
    return found;
  }
  fs::path copies(Split split) const {
    const std::string hash = read_manifest(options_.from.of(split)).root_hash;
    return options_.folder / (std::string(split_name(split)) + "-" + hash);
  }
  void expect_copied(const SplitFolders& folders) const {
    for (const Split split : {Split::train, Split::test}) {
      EXPECT_EQ(folders.of(split), copies(split));
      for (const auto& entry : fs::directory_iterator(options_.from.of(split))) {
        EXPECT_EQ(content(copies(split) / entry.path().filename()), content(entry.path())) << entry.path();
      }
    }
    EXPECT_EQ(files().size(), 9U + 3 + 2);  // shards, manifests, and nothing else
    EXPECT_EQ(Dataset(folders.of(Split::train)).samples(), 60);
  }
  template <typename Change>
  void on_rank_0(Change change) const {
    world_.barrier();
    if (world_.rank() == 0) change();
    world_.barrier();
  }

  Communicator world_{MPI_COMM_WORLD};
  Communicator alone_{MPI_COMM_SELF};
  TemporaryFolder own_;
  fs::path folder_;
  StageOptions options_;
};

TEST_F(StageTest, copies_what_there_is_and_leaves_the_rest) {
  const SplitFolders folders = stage_all();
  expect_copied(folders);
  EXPECT_EQ(folders.of(Split::validation), folder_ / "data" / "validation");
}

TEST_F(StageTest, a_second_start_writes_nothing) {
  stage_all();
  const auto before = files();
  on_rank_0([] {});
  expect_copied(stage_all());
  EXPECT_EQ(files(), before);
}

TEST_F(StageTest, goes_on_where_another_was_interrupted) {
  stage_all();
  const auto before = files();
  on_rank_0([&] {
    const ShardEntry entry = read_manifest(options_.from.of(Split::train)).shards[3];
    fs::remove(copies(Split::train) / "shard-3.h5");
    fs::remove(copies(Split::train) / "manifest.json");
    write_file_atomically(unfinished_copy(copies(Split::train), entry), "half");
    fs::resize_file(copies(Split::train) / "shard-5.h5", 1000);
  });
  expect_copied(stage_all());
  int made_again = 0;
  for (const auto& [name, inode] : files()) made_again += before.at(name) != inode;
  EXPECT_LE(made_again, 3);
}

TEST_F(StageTest, jobs_that_stage_the_same_at_once_do_no_harm) {
  const SplitFolders folders = stage_alone();  // each rank is a job
  world_.barrier();                            // the others still had unfinished copies, which were counted
  expect_copied(folders);
}

TEST_F(StageTest, a_link_in_the_place_of_a_copy_is_replaced_and_what_it_leads_to_stays) {
  const fs::path target = folder_ / "target";
  on_rank_0([&] {
    fs::create_directories(copies(Split::train));
    write_file_atomically(target, content(options_.from.of(Split::train) / "shard-2.h5"));
    fs::create_symlink(target, copies(Split::train) / "shard-2.h5");
  });
  stage_all();
  EXPECT_TRUE(fs::symlink_status(copies(Split::train) / "shard-2.h5").type() == fs::file_type::regular);
  EXPECT_FALSE(is_absent(target));
}

class StageAloneTest : public StageTest {
 protected:
  void SetUp() override {
    if (world_.size() > 1) GTEST_SKIP() << "of one rank";
  }
  // No file under a name of copies in the making.
  bool nothing_is_half_written() const {
    for (const auto& [name, inode] : files()) {
      if (fs::path(name).filename().string().front() == '.') return false;
    }
    return true;
  }
};

TEST_F(StageAloneTest, a_damaged_shard_is_named_and_not_copied) {
  const fs::path shard = options_.from.of(Split::train) / "shard-4.h5";
  std::string bytes = content(shard);
  bytes[bytes.size() / 2] ^= 1;
  write_file_atomically(shard, bytes);
  expect_message(error_sentence([&] { stage_alone(); }, Failure::bad_data), {shard.string()});
  EXPECT_TRUE(is_absent(copies(Split::train) / "shard-4.h5"));
  EXPECT_TRUE(nothing_is_half_written());

  fs::resize_file(shard, 1000);
  expect_message(error_sentence([&] { stage_alone(); }, Failure::bad_data),
                 {shard.string(), std::to_string(bytes.size())});
  fs::remove(shard);
  expect_message(error_sentence([&] { stage_alone(); }, Failure::bad_data), {shard.string()});
  EXPECT_TRUE(nothing_is_half_written());
}

TEST_F(StageAloneTest, names_in_a_manifest_do_not_leave_the_folder) {
  const fs::path file = options_.from.of(Split::train) / manifest_file;
  const std::string text = content(file);
  for (const char* const name : {"../../evil.h5", "/tmp/evil.h5", "..", ".hidden", "a\\\\b"}) {
    std::string changed = text;
    const std::string_view before = "\"shard-0.h5\"";
    changed.replace(changed.find(before), before.size(), '"' + std::string(name) + '"');
    write_file_atomically(file, changed);
    expect_message(error_sentence([&] { stage_alone(); }, Failure::bad_data), {file.string()});
    EXPECT_TRUE(files().empty());
  }
}

TEST_F(StageAloneTest, a_folder_that_cannot_be_is_refused) {
  write_file_atomically(options_.folder, "a file");
  expect_message(error_sentence([&] { stage_alone(); }), {"--stage", options_.folder.string()});
  fs::remove(options_.folder);
  const fs::path elsewhere = folder_ / "elsewhere";
  fs::create_directories(elsewhere);
  fs::create_directories(options_.folder);
  fs::create_directory_symlink(elsewhere, copies(Split::train));
  expect_message(error_sentence([&] { stage_alone(); }), {"--stage", copies(Split::train).string()});
  EXPECT_TRUE(fs::is_empty(elsewhere));
}

TEST_F(StageAloneTest, no_room_is_told_before_anything_is_copied) {
  Manifest manifest = read_manifest(options_.from.of(Split::train));
  manifest.block_bytes = 1 << 30;
  for (ShardEntry& entry : manifest.shards) entry.block_hashes.resize(1);
  manifest.shards[1].bytes = std::int64_t{1} << 47;
  manifest.shards[1].block_hashes.assign(1 << 17, manifest.shards[1].block_hashes.front());
  write_manifest(options_.from.of(Split::train), manifest);
  const std::string told = error_sentence([&] { stage_alone(); }, Failure::other);
  for (const std::string& subject :
       {"'" + options_.folder.string() + "'", std::string("No space left on device"), std::string("140737488.4 MB")}) {
    EXPECT_NE(told.find(subject), std::string::npos) << told;
  }
  EXPECT_TRUE(files().empty());
}

TEST_F(StageAloneTest, a_copy_that_cannot_be_written_leaves_nothing) {
  std::string message;
  {
    const NoRoomBeyond limit(900);
    message = error_sentence([&] { stage_alone(); });
  }
  expect_message(message, {"shard-0"});
  EXPECT_TRUE(files().empty());
}

// A small disk, which only root can make.
TEST_F(StageAloneTest, a_disk_that_fills_up_meanwhile_is_told) {
  fs::create_directories(options_.folder);
  if (::mount("none", options_.folder.c_str(), "tmpfs", 0, "size=1m") != 0) GTEST_SKIP() << "no right to mount";
  const std::string told = error_sentence(
      [&] {
        int round = 0;
        stage(alone_, options_, [&] {
          if (++round > 1) std::ofstream(options_.folder / "other") << std::string(1 << 20, 'x');
        });
      },
      Failure::other);
  expect_message(told, {});
  EXPECT_TRUE(nothing_is_half_written());
  ::umount(options_.folder.c_str());
}

// The file under the other name was emptied, and then had a shard's content.
TEST_F(StageAloneTest, a_hard_link_in_the_place_of_an_unfinished_copy_is_broken) {
  const fs::path precious = folder_ / "precious";
  write_file_atomically(precious, "precious");
  const ShardEntry entry = read_manifest(options_.from.of(Split::train)).shards[1];
  fs::create_directories(copies(Split::train));
  fs::create_hard_link(precious, unfinished_copy(copies(Split::train), entry));
  fs::create_hard_link(options_.from.of(Split::train) / "shard-0.h5", folder_ / "second name of a source");
  expect_copied(stage_alone());
  EXPECT_EQ(content(precious), "precious");
}

// Another process that has begun to copy a shard, and is stopped.
class StoppedCopyTest : public StageAloneTest {
 protected:
  void begin_other() {
    entry_ = read_manifest(options_.from.of(Split::train)).shards[2];
    fs::create_directories(copies(Split::train));
    other_ = ::fork();
    if (other_ == 0) {
      std::unique_ptr<ShardCopy> copy = ShardCopy::begin(options_.from.of(Split::train), copies(Split::train), entry_);
      ::raise(SIGSTOP);
      while (copy->advance() != 0) {
      }
      copy.reset();
      ::_exit(0);
    }
    EXPECT_EQ(::waitpid(other_, nullptr, WUNTRACED), other_);
  }
  void TearDown() override {
    if (other_ > 0) ::kill(other_, SIGKILL);
    if (other_ > 0) ::waitpid(other_, nullptr, 0);
  }
  fs::path unfinished() const { return unfinished_copy(copies(Split::train), entry_); }
  fs::path shard() const { return copies(Split::train) / "shard-2.h5"; }

  ShardEntry entry_;
  pid_t other_ = 0;
};

// The training waited for ever, and said nothing.
TEST_F(StoppedCopyTest, is_waited_for_by_name_and_then_another_is_made) {
  begin_other();
  options_.patience = std::chrono::milliseconds(300);
  testing::internal::CaptureStderr();
  stage_alone();
  const std::string told = testing::internal::GetCapturedStderr();
  const std::string holder = describe_lease_holder(unfinished());
  EXPECT_NE(holder.find(fmt::format(", process {}, stopped", other_)), std::string::npos) << holder;
  const std::size_t second_line = told.find('\n') + 1;
  const std::string waiting = told.substr(0, second_line);
  const std::string own_copy = told.substr(second_line);
  for (const std::string& subject :
       {"'" + shard().string() + "'", holder, "'" + unfinished().string() + "'", std::string("0.3 s")}) {
    EXPECT_NE(waiting.find(subject), std::string::npos) << subject << " in " << told;
  }
  for (const std::string& subject : {"'" + unfinished().string() + "'", holder, std::string("'shard-2.h5'")}) {
    EXPECT_NE(own_copy.find(subject), std::string::npos) << subject << " in " << told;
  }
  EXPECT_EQ(content(shard()), content(options_.from.of(Split::train) / "shard-2.h5"));
  EXPECT_TRUE(is_absent(unfinished_copy(copies(Split::train), entry_, 2)));

  // The other wakes up: what was finished first stays, the same file.
  const auto before = files();
  ::kill(other_, SIGCONT);
  int status = 0;
  ASSERT_EQ(::waitpid(other_, &status, 0), other_);
  other_ = 0;
  EXPECT_EQ(status, 0);
  EXPECT_EQ(files().at(fs::relative(shard(), options_.folder)), before.at(fs::relative(shard(), options_.folder)));
  expect_copied(stage_alone());
}

TEST_F(StoppedCopyTest, leaves_nothing_behind_when_it_is_killed_later) {
  begin_other();
  options_.patience = std::chrono::milliseconds(100);
  stage_alone();
  ::kill(other_, SIGKILL);
  ASSERT_EQ(::waitpid(other_, nullptr, 0), other_);
  other_ = 0;
  EXPECT_FALSE(nothing_is_half_written());
  expect_copied(stage_alone());
}

// A small disk, which only root can make.
TEST_F(StoppedCopyTest, another_is_made_only_where_there_is_room) {
  fs::create_directories(options_.folder);
  if (::mount("none", options_.folder.c_str(), "tmpfs", 0, "size=1m") != 0) GTEST_SKIP() << "no right to mount";
  begin_other();
  options_.patience = std::chrono::milliseconds(400);
  const std::string told = error_sentence(
      [&] {
        int round = 0;
        stage(alone_, options_, [&] {
          if (++round > 2) std::ofstream(options_.folder / "other", std::ios::app) << std::string(1 << 20, 'x');
        });
      },
      Failure::other);
  expect_message(told, {shard().string()});
  EXPECT_TRUE(is_absent(unfinished_copy(copies(Split::train), entry_, 2)));
  ::kill(other_, SIGKILL);
  ::umount2(options_.folder.c_str(), MNT_DETACH);
}

TEST_F(StageAloneTest, a_copy_that_ends_early_leaves_nothing) {
  const ShardEntry entry = read_manifest(options_.from.of(Split::train)).shards[0];
  fs::create_directories(options_.folder);
  std::unique_ptr<ShardCopy> copy = ShardCopy::begin(options_.from.of(Split::train), options_.folder, entry);
  EXPECT_EQ(ShardCopy::begin(options_.from.of(Split::train), options_.folder, entry), nullptr);
  EXPECT_EQ(copy->advance(), entry.bytes);
  EXPECT_EQ(files().size(), 1U);
  copy.reset();
  EXPECT_TRUE(files().empty());
}

TEST_F(StageAloneTest, a_stop_leaves_whole_copies_alone) {
  struct Asked {};
  int rounds = 0;
  EXPECT_THROW(stage(alone_, options_,
                     [&] {
                       if (++rounds == 2) throw Asked();
                     }),
               Asked);
  EXPECT_TRUE(nothing_is_half_written());
  expect_copied(stage_alone());
}

}  // namespace lockstep::stage_test
