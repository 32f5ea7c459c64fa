// The real program: what it writes, says and returns.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "base/io/descriptor.hpp"
#include "base/io/file.hpp"
#include "picture/golden_pictures.hpp"
#include "support/program.hpp"
#include "support/samples/small_cifar.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::make_shards_test {

namespace fs = std::filesystem;
using test::GoldenPictures;

class MakeShardsTest : public ::testing::Test {
 protected:
  MakeShardsTest() { write_small_cifar(cifar()); }

  fs::path cifar() const { return folder_.path() / "cifar"; }
  fs::path output() const { return folder_.path() / "with spaces"; }

  std::vector<std::string> conversion(const fs::path& to) const {
    return {built_program("make_shards"), "cifar10", "--source",     cifar(), "--output", to,
            "--samples-per-shard",        "15",      "--validation", "20"};
  }
  std::vector<std::string> conversion_of_pictures(const fs::path& source) const {
    return {built_program("make_shards"),
            "images",
            "--source",
            source,
            "--output",
            output(),
            "--store",
            "raw",
            "--side",
            "32",
            "--allow",
            "duplicates"};
  }
  void expect_failure(const std::vector<std::string>& arguments, int code,
                      const std::vector<std::string>& subjects) const {
    const ProgramResult result = run_program(arguments);
    EXPECT_EQ(result.exit_code, code) << result.errors;
    for (const std::string& subject : subjects) {
      EXPECT_NE(result.errors.find(subject), std::string::npos) << subject << "\n" << result.errors;
    }
  }

  TemporaryFolder folder_;
};

TEST_F(MakeShardsTest, a_data_set_is_written_verified_and_kept) {
  const ProgramResult first = run_program(conversion(output()));
  ASSERT_EQ(first.exit_code, 0) << first.errors;
  EXPECT_NE(first.output.find("80 samples in 6 shards"), std::string::npos) << first.output;
  EXPECT_NE(first.output.find("'" + (cifar() / "data_batch_2.bin").string() + "'"), std::string::npos) << first.output;
  EXPECT_EQ(run_program({built_program("make_shards"), "verify", output()}).exit_code, 0);
  const auto line = [&](const std::string& split) {
    const std::string manifest = read_file(output() / split / "manifest.json", 1 << 20);
    const std::string_view name = R"("root_hash": ")";
    return split + " " + manifest.substr(manifest.find(name) + name.size(), 32) + "\n";
  };
  EXPECT_EQ(run_program({built_program("make_shards"), "verify", "--root-hash", output()}).output,
            line("train") + line("validation") + line("test"));
  const ProgramResult second = run_program(conversion(output()));
  EXPECT_NE(second.output.find("complete"), std::string::npos) << second.output;
}

TEST_F(MakeShardsTest, four_ranks_write_the_bytes_that_one_writes) {
  ASSERT_EQ(run_program(conversion(folder_.path() / "one")).exit_code, 0);
  const ProgramResult four = run_program(under_mpirun(4, conversion(folder_.path() / "four")));
  ASSERT_EQ(four.exit_code, 0) << four.errors;
  EXPECT_EQ(run_program({"diff", "-r", folder_.path() / "one", folder_.path() / "four"}).exit_code, 0);
}

TEST_F(MakeShardsTest, a_seed_decides_which_synthetic_pictures_are_drawn) {
  const auto drawn = [&](const std::string& name, const std::string& seed) {
    const fs::path to = folder_.path() / name;
    EXPECT_EQ(
        run_program({built_program("make_shards"), "synthetic", "--samples", "20", "--output", to, "--seed", seed})
            .exit_code,
        0);
    return read_file(to / "train" / "train-00000.h5", 1 << 20);
  };
  const std::string one = drawn("one", "1");
  EXPECT_EQ(drawn("again", "1"), one);
  EXPECT_NE(drawn("two", "2"), one);
}

TEST_F(MakeShardsTest, a_damaged_shard_is_named_with_its_block) {
  ASSERT_EQ(run_program(conversion(output())).exit_code, 0);
  const fs::path shard = output() / "test" / "test-00001.h5";
  std::string bytes = read_file(shard, 1 << 20);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  write_file_atomically(shard, bytes);
  expect_failure({built_program("make_shards"), "verify", output()}, 65, {shard.string(), "1 of 10"});
}

TEST_F(MakeShardsTest, other_options_do_not_mix) {
  ASSERT_EQ(run_program(conversion(output())).exit_code, 0);
  std::vector<std::string> other = conversion(output());
  other.back() = "21";
  expect_failure(other, 2, {output().string(), "--validation", "20", "21"});
}

TEST_F(MakeShardsTest, a_folder_with_other_things_is_left_alone) {
  fs::create_directories(output());
  write_file_atomically(output() / "thesis.tex", "years of work");
  expect_failure(conversion(output()), 2, {output().string(), "--output"});
}

TEST_F(MakeShardsTest, an_output_that_is_a_file_is_refused) {
  write_file_atomically(output(), "a file");
  expect_failure(conversion(output()), 2, {output().string(), "--output"});
}

// "filesystem error: status: Too many levels of symbolic links [...]", with code 1.
TEST_F(MakeShardsTest, a_link_that_leads_to_itself_is_told_in_one_sentence) {
  const fs::path loop = folder_.path() / "loop";
  fs::create_symlink("loop", loop);
  const std::vector<std::vector<std::string>> commands = {{"cifar10", "--source", loop, "--output", output()},
                                                          {"cifar100", "--source", loop, "--output", output()},
                                                          {"mnist", "--source", loop, "--output", output()},
                                                          {"fashion_mnist", "--source", loop, "--output", output()},
                                                          {"idx", "--source", loop, "--output", output()},
                                                          {"cifar10", "--source", cifar(), "--output", loop},
                                                          {"verify", loop}};
  for (std::vector<std::string> words : commands) {
    words.insert(words.begin(), built_program("make_shards"));
    const ProgramResult result = run_program(words);
    EXPECT_EQ(result.exit_code, 2) << words[1];
    EXPECT_NE(result.errors.find("'" + loop.string()), std::string::npos) << result.errors;
    EXPECT_EQ(result.errors.find("filesystem error"), std::string::npos) << result.errors;
    EXPECT_EQ(std::ranges::count(result.errors, '\n'), 1) << result.errors;
  }
  expect_failure(conversion(loop), 2, {loop.string(), "--output"});
}

TEST_F(MakeShardsTest, a_bad_label_leaves_nothing_behind) {
  std::string records = small_cifar_records(5);
  records[0] = static_cast<char>(255);
  write_file_atomically(cifar() / "data_batch_5.bin", records);
  expect_failure(conversion(output()), 65, {(cifar() / "data_batch_5.bin").string(), "255", "10"});
  EXPECT_FALSE(fs::exists(output()));
}

// A class's name of 300 bytes was written, and verify then called the manifest damaged.
TEST_F(MakeShardsTest, a_name_that_no_reader_takes_leaves_nothing_behind) {
  write_file_atomically(cifar() / "batches.meta.txt", std::string(300, 'x') + "\n1\n2\n3\n4\n5\n6\n7\n8\n9\n");
  expect_failure(conversion(output()), 2, {(output() / "train" / "manifest.json").string(), "'classes'"});
  EXPECT_FALSE(fs::exists(output()));
  fs::remove(cifar() / "batches.meta.txt");
}

TEST_F(MakeShardsTest, a_source_that_is_a_pipe_is_named_at_once) {
  fs::remove(cifar() / "test_batch.bin");
  ASSERT_EQ(::mkfifo((cifar() / "test_batch.bin").c_str(), 0600), 0);
  expect_failure(conversion(output()), 2, {(cifar() / "test_batch.bin").string(), "pipe"});
  EXPECT_FALSE(fs::exists(output()));
}

TEST_F(MakeShardsTest, more_validation_samples_than_there_are_is_refused) {
  std::vector<std::string> all = conversion(output());
  all.back() = "100";
  expect_failure(all, 2, {"100", "--validation"});
}

TEST_F(MakeShardsTest, a_full_disk_leaves_no_half_shard_and_more_space_lets_it_continue) {
  const fs::path disk = folder_.path() / "disk";
  fs::create_directories(disk);
  if (::mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=160k") != 0) GTEST_SKIP() << "mount is not permitted here";
  const ProgramResult full = run_program(conversion(disk / "out"));
  EXPECT_EQ(full.exit_code, 1);
  EXPECT_NE(full.errors.find("No space left on device"), std::string::npos) << full.errors;
  EXPECT_FALSE(fs::exists(disk / "out" / "train" / "manifest.json"));
  for (const auto& entry : fs::recursive_directory_iterator(disk)) {
    EXPECT_FALSE(entry.path().string().ends_with(partial_suffix)) << entry.path();
  }
  EXPECT_EQ(::mount("tmpfs", disk.c_str(), "tmpfs", MS_REMOUNT, "size=16m"), 0);
  const ProgramResult more = run_program(conversion(disk / "out"));
  EXPECT_EQ(more.exit_code, 0) << more.errors;
  EXPECT_NE(more.output.find("kept from an earlier run"), std::string::npos) << more.output;
  ::umount(disk.c_str());
}

TEST_F(MakeShardsTest, the_real_cifar10_has_its_known_mean) {
  const char* const data = std::getenv("LOCKSTEP_TEST_DATA");
  if (data == nullptr) GTEST_SKIP() << "LOCKSTEP_TEST_DATA does not name a folder with cifar-10-batches-bin";
  const ProgramResult result = run_program({built_program("make_shards"), "cifar10", "--source",
                                            fs::path(data) / "cifar-10-batches-bin", "--output", output()});
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  const std::string manifest = read_file(output() / "train" / "manifest.json", 1 << 20);
  EXPECT_NE(manifest.find("0.49139"), std::string::npos);  // of red, as everybody reports it
}

// The way of one's own pictures, with a name that a shell would not leave as it is.
TEST_F(MakeShardsTest, folders_of_pictures_become_a_data_set) {
  const GoldenPictures golden;
  const fs::path pictures = folder_.path() / "my 'own' $(touch hurt); pictures";
  for (const char* const name : {"cat", "dog"}) {
    fs::create_directories(pictures / name);
    for (int i = 0; i < 20; ++i) {
      write_file_atomically(pictures / name / fmt::format("{}.jpg", i), golden.file(i % 2 == 0 ? "jpeg" : "png"));
    }
  }
  write_file_atomically(pictures / "dog" / "notes.txt", "not a picture");
  const std::vector<std::string> words = conversion_of_pictures(pictures);
  const ProgramResult first = run_program(under_mpirun(2, words));
  ASSERT_EQ(first.exit_code, 0) << first.errors;
  for (const char* const line : {"  training: 36 pictures of 2 classes (the class folders)\n",
                                 "  test: 4 pictures of 2 classes (a tenth of each class, held out by --seed)\n",
                                 "  2 classes (training + test): cat 18 + 2, dog 18 + 2\n"}) {
    EXPECT_NE(first.output.find(line), std::string::npos) << first.output;
  }
  EXPECT_NE(first.errors.find("4 pictures "), std::string::npos) << first.errors;
  EXPECT_NE(first.output.find("'" + (output() / "odd_files.csv").string() + "'"), std::string::npos) << first.output;
  const ProgramResult second = run_program(words);
  EXPECT_NE(second.output.find("complete"), std::string::npos) << second.output;
  const ProgramResult looked = run_program({built_program("inspect"), output() / "train"});
  EXPECT_NE(looked.output.find("32 x 32 pixels, 3 channels"), std::string::npos) << looked.output;
  const ProgramResult trained = run_program({built_program("train_cifar"), "--data", output(), "--model", "lenet",
                                             "--epochs", "1", "--global-batch", "4", "--threads", "1"});
  EXPECT_EQ(trained.exit_code, 0) << trained.errors;
  EXPECT_FALSE(fs::exists("hurt"));
}

// HDF5 could not create the attribute with the names, and half of the folder stayed.
TEST_F(MakeShardsTest, a_data_set_of_8000_classes_is_trained_and_predicted) {
  const GoldenPictures golden;
  const fs::path pictures = folder_.path() / "pictures";
  fs::create_directories(pictures);
  std::string classes;
  for (int c = 0; c < 8000; ++c) classes += fmt::format("n{:08}\n", c);
  write_file_atomically(pictures / "classes.txt", classes);
  std::string list;
  for (int i = 0; i < 8; ++i) {
    const std::string name = fmt::format("{}.png", i);
    write_file_atomically(pictures / name, golden.file("png"));
    list += fmt::format("{} {}\n", name, i < 4 ? 0 : 7999);
  }
  write_file_atomically(pictures / "train.list", list);
  write_file_atomically(pictures / "test.list", "0.png 0\n7.png 7999\n");
  const ProgramResult converted = run_program(conversion_of_pictures(pictures));
  ASSERT_EQ(converted.exit_code, 0) << converted.errors;
  const fs::path run = folder_.path() / "run";
  const ProgramResult trained =
      run_program({built_program("train_cifar"), "--data", output(), "--model", "lenet", "--image-size", "32",
                   "--max-steps", "1", "--global-batch", "4", "--threads", "1", "--output", run});
  ASSERT_EQ(trained.exit_code, 0) << trained.errors;
  const fs::path table = folder_.path() / "predictions.csv";
  const ProgramResult evaluated =
      run_program({built_program("evaluate"), "--model-file", run, "--data", output(), "--threads", "1",
                   "--predictions", table, "--logits", folder_.path() / "logits.h5"});
  ASSERT_EQ(evaluated.exit_code, 0) << evaluated.errors;
  EXPECT_NE(read_file(table, 1 << 20).find(",n00007999,"), std::string::npos);
  const ProgramResult predicted =
      run_program({built_program("predict"), run, pictures / "0.png", "--top", "8000", "--threads", "1"});
  ASSERT_EQ(predicted.exit_code, 0) << predicted.errors;
  EXPECT_NE(predicted.output.find(",7999,n00007999,"), std::string::npos);
  fs::copy_file(output() / "test" / "test-00000.h5", folder_.path() / "lone.h5");
  const ProgramResult looked = run_program({built_program("inspect"), folder_.path() / "lone.h5"});
  EXPECT_NE(looked.output.find("   7999  n00007999             1 samples"), std::string::npos) << looked.errors;
}

TEST_F(MakeShardsTest, more_classes_than_a_data_set_can_have_are_refused_beforehand) {
  const GoldenPictures golden;
  const fs::path pictures = folder_.path() / "pictures";
  fs::create_directories(pictures);
  std::string classes;
  for (int c = 0; c <= 100'000; ++c) classes += fmt::format("c{}\n", c);
  write_file_atomically(pictures / "classes.txt", classes);
  for (const char* const name : {"a.png", "b.png"}) write_file_atomically(pictures / name, golden.file("png"));
  write_file_atomically(pictures / "train.list", "a.png 0\nb.png 99999\n");
  write_file_atomically(pictures / "test.list", "a.png 0\n");
  expect_failure(
      {built_program("make_shards"), "images", "--source", pictures, "--output", output(), "--allow", "duplicates"}, 2,
      {"'classes'", "100000"});
  EXPECT_FALSE(fs::exists(output()));
}

// --source is required, it said.
TEST_F(MakeShardsTest, help_and_versions_are_printed_whatever_else_is_wrong) {
  const std::string program = built_program("make_shards");
  const ProgramResult help = run_program({program, "images", "--help"});
  EXPECT_NE(help.output.find("Usage: make_shards images"), std::string::npos) << help.output << help.errors;
  for (const std::vector<std::string>& words : {std::vector<std::string>{"--help", "images"},
                                                {"images", "--side", "x", "-h"},
                                                {"images", "--quantum-leap", "--help-all"}}) {
    std::vector<std::string> line = {program};
    line.insert(line.end(), words.begin(), words.end());
    EXPECT_EQ(run_program(line).output, help.output) << words.front();
  }
  const ProgramResult group = run_program({program, "images", "--help", "input"});
  EXPECT_TRUE(group.output.starts_with("Input:\n")) << group.output;
  const ProgramResult versions = run_program({program, "images", "--version"});
  EXPECT_TRUE(versions.output.starts_with("lockstep ")) << versions.output;

  // A library of that name without its functions.
  for (const char* name : {"libcublasLt.so.12", "libcublasLt.so.13"}) {
    fs::copy_file(built_program("libslow_node.so"), folder_.path() / name);
  }
  const ProgramResult damaged =
      run_program({"env", "LD_LIBRARY_PATH=" + folder_.path().string(), program, "--version"});
  EXPECT_EQ(damaged.exit_code, 0) << damaged.errors;
  const bool has_cuda = versions.output.find("cuBLAS ") != std::string::npos;
  EXPECT_EQ(damaged.output.find("cuBLAS         not found") != std::string::npos, has_cuda) << damaged.output;
}

TEST_F(MakeShardsTest, options_without_effect_and_empty_names_are_refused) {
  const std::vector<std::string> start = {built_program("make_shards"), "images", "--source", folder_.path(),
                                          "--output"};
  const auto refuse = [&](const std::string& output, const std::vector<std::string>& more,
                          const std::vector<std::string>& subjects) {
    std::vector<std::string> words = start;
    words.push_back(output);
    words.insert(words.end(), more.begin(), more.end());
    expect_failure(words, 2, subjects);
  };
  refuse(output(), {"--side", "32"}, {"--side", "raw"});
  refuse(output(), {"--store", "raw", "--max-side", "32"}, {"--max-side", "jpeg"});
  refuse(output(), {"--quality", "32", "--store", "raw"}, {"--quality", "jpeg"});
  refuse("", {}, {"--output", "''"});
  EXPECT_FALSE(fs::exists(output()));
}

// inspect ignored them.
TEST_F(MakeShardsTest, inspect_refuses_options_of_pictures_that_it_does_not_draw) {
  const std::string program = built_program("inspect");
  for (const std::vector<std::string>& more : std::vector<std::vector<std::string>>{
           {"--augment", "none"}, {"--resize", "64"}, {"--seed", "7"}, {"--image-size", "64"}}) {
    expect_failure({program, folder_.path(), more[0], more[1]}, 2, {more[0], "--pictures"});
  }
  expect_failure({program, "--model", "resnet20", "--augment", "none"}, 2, {"--augment", "--pictures"});
  EXPECT_EQ(run_program({program, "--model", "resnet20", "--image-size", "32"}).exit_code, 0);
}

TEST_F(MakeShardsTest, a_class_of_which_no_picture_can_be_read_is_told) {
  const GoldenPictures golden;
  const fs::path pictures = folder_.path() / "pictures";
  for (const char* const name : {"cat", "dog"}) fs::create_directories(pictures / name);
  for (int i = 0; i < 4; ++i) write_file_atomically(pictures / "cat" / fmt::format("{}.jpg", i), golden.file("jpeg"));
  write_file_atomically(pictures / "dog" / "notes.jpg", "not a picture");
  const ProgramResult made = run_program(
      {built_program("make_shards"), "images", "--source", pictures, "--output", output(), "--allow", "duplicates"});
  EXPECT_EQ(made.exit_code, 0) << made.errors;
  EXPECT_NE(made.errors.find("'dog'"), std::string::npos) << made.errors;
}

// Became one class; the copies were learned and tested.
TEST_F(MakeShardsTest, what_looks_like_a_mistake_is_refused_and_leaves_nothing_behind) {
  const GoldenPictures golden;
  const fs::path pictures = folder_.path() / "pictures";
  fs::create_directories(pictures / "cat");
  for (const char* const name : {"a.jpg", "b.jpg"}) {
    write_file_atomically(pictures / "cat" / name, golden.file("jpeg"));
  }
  std::vector<std::string> words = {built_program("make_shards"), "images", "--source", pictures, "--output", output()};
  expect_failure(words, 2, {"--allow one-class"});
  words.insert(words.end(), {"--allow", "one-class"});
  expect_failure(words, 2, {"--allow duplicates"});
  EXPECT_FALSE(fs::exists(output()));
  words.back() = "one-class,duplicates";
  EXPECT_EQ(run_program(words).exit_code, 0);
  words.back() = "two-classes";
  expect_failure(words, 2, {"--allow", "'two-classes'", "nested-classes"});
}

TEST_F(MakeShardsTest, skipped_folders_are_named) {
  const GoldenPictures golden;
  const fs::path pictures = folder_.path() / "pictures";
  for (const char* const name : {"cat", "dog", "cow"}) fs::create_directories(pictures / name);
  int at = 0;
  for (const char* const picture : {"jpeg", "jpeg_444", "jpeg_gray", "png", "jpeg_progressive", "jpeg_cmyk"}) {
    const char* const folder = std::array{"cat", "dog", "cow"}.at(static_cast<std::size_t>(at++) % 3);
    write_file_atomically(pictures / folder / fmt::format("{}.jpg", at), golden.file(picture));
  }
  const ProgramResult made = run_program({built_program("make_shards"), "images", "--source", pictures, "--output",
                                          output(), "--skip", "cow", "--skip", "dog/2.jpg"});
  EXPECT_EQ(made.exit_code, 0) << made.errors;
  EXPECT_NE(made.output.find("'cow', 'dog/2.jpg'"), std::string::npos) << made.output;
}

TEST_F(MakeShardsTest, classes_whose_names_come_out_alike_are_refused) {
  const GoldenPictures golden;
  const fs::path pictures = folder_.path() / "pictures";
  for (const char* const name : {"\xff\xfe", "\xff\xfd"}) {
    fs::create_directories(pictures / name);
    write_file_atomically(pictures / name / "a.jpg", golden.file("jpeg"));
    write_file_atomically(pictures / name / "b.jpg", golden.file("jpeg"));
  }
  expect_failure(
      {built_program("make_shards"), "images", "--source", pictures, "--output", output(), "--allow", "duplicates"}, 2,
      {"UTF-8"});
  EXPECT_FALSE(fs::exists(output()));
}

TEST_F(MakeShardsTest, an_output_in_the_source_is_refused) {
  const fs::path pictures = folder_.path() / "pictures";
  fs::create_directories(pictures / "cat");
  expect_failure(
      {built_program("make_shards"), "images", "--source", pictures, "--output", pictures / "cat" / ".." / "o"}, 2,
      {"--source", "--output"});
}

TEST_F(MakeShardsTest, a_folder_that_another_run_writes_into_is_left_to_it) {
  fs::create_directories(output());
  const Descriptor other(::open(output().c_str(), O_RDONLY | O_DIRECTORY));
  ASSERT_EQ(::flock(other, LOCK_EX), 0);
  expect_failure({built_program("make_shards"), "synthetic", "--samples", "40", "--output", output()}, 2,
                 {output().string(), "--output"});
  EXPECT_TRUE(fs::is_empty(output()));
}

TEST_F(MakeShardsTest, coarse_labels_of_cifar100_are_a_data_set_of_20_classes) {
  const fs::path cifar100 = folder_.path() / "cifar100";
  fs::create_directories(cifar100);
  for (const char* const file : {"train.bin", "test.bin"}) {
    std::string records;
    for (char sample = 0; sample < 20; ++sample) records += std::string{sample, '\x40'} + std::string(3072, sample);
    write_file_atomically(cifar100 / file, records);
  }
  std::vector<std::string> words = {
      built_program("make_shards"), "cifar100", "--source", cifar100, "--output", output(), "--labels", "coarse"};
  const ProgramResult made = run_program(words);
  ASSERT_EQ(made.exit_code, 0) << made.errors;
  const ProgramResult looked = run_program({built_program("inspect"), output() / "test"});
  EXPECT_NE(looked.output.find("data set 'cifar100_coarse'"), std::string::npos) << looked.output;
  EXPECT_NE(looked.output.find("20: aquatic_mammals, fish, "), std::string::npos) << looked.output;
  words.back() = "fine";
  expect_failure(words, 2, {"--source"});
}

TEST_F(MakeShardsTest, a_store_that_is_none_is_refused) {
  expect_failure(
      {built_program("make_shards"), "images", "--source", folder_.path(), "--output", output(), "--store", "png"}, 2,
      {"--store", "'png'", "raw"});
}

}  // namespace lockstep::make_shards_test
