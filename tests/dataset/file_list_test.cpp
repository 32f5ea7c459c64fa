// Lists of CIFAR's files, as PaddlePaddle's train.list and test.list.
#include "dataset/sources/file_list.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "base/io/file.hpp"
#include "dataset/sources/sample_source.hpp"
#include "support/message_of.hpp"
#include "support/messages.hpp"
#include "support/samples/small_cifar.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::file_list_test {

namespace fs = std::filesystem;

class FileListTest : public testing::Test {
 protected:
  FileListTest() {
    write_small_cifar(folder_.path());
    write("test.list", "test_batch.bin\n");
  }
  void write(const char* file, const std::string& text) const { write_file_atomically(folder_.path() / file, text); }
  std::string quoted(const char* file) const { return "'" + (folder_.path() / file).string() + "'"; }
  std::unique_ptr<SampleSource> open() const { return open_cifar10(folder_.path()); }
  void expect_refusal(Failure failure, const std::string& train, Subjects subjects,
                      const std::source_location& where = std::source_location::current()) const {
    write("train.list", train);
    expect_error(
        failure, subjects, [&] { open(); }, where);
  }
  TemporaryFolder folder_;
};

TEST_F(FileListTest, the_listed_files_are_read_in_their_order) {
  fs::create_directory(folder_.path() / "a b");
  fs::rename(folder_.path() / "data_batch_4.bin", folder_.path() / "a b/part-4");
  write("train.list", "a b/part-4\r\n\n" + (folder_.path() / "data_batch_2.bin").string() + " \n");
  const auto source = open();
  ASSERT_EQ(source->samples(SourceSplit::train), 40);
  EXPECT_EQ(source->samples(SourceSplit::test), 20);
  SourceSample image;
  for (const int file : {4, 2}) {
    const std::string record = small_cifar_records(file).substr(0, 3073);
    EXPECT_EQ(source->read(SourceSplit::train, file == 4 ? 0 : 20, image), record[0]);
    EXPECT_EQ(image.picture.pixels[0], static_cast<std::uint8_t>(record[1]));
  }
  EXPECT_NE(source->description().source.find("in lists"), std::string::npos);
}

TEST_F(FileListTest, cifar100_has_lists_too) {
  write("train.bin", std::string("\x13\x63", 2) + std::string(3072, 'x'));
  write("train.list", "train.bin\n");
  write("test.list", "sub.bin\n");
  write("sub.bin", std::string("\x01\x02", 2) + std::string(3072, 'y'));
  SourceSample image;
  EXPECT_EQ(open_cifar100(folder_.path(), Cifar100Labels::fine)->read(SourceSplit::test, 0, image), 2);
}

TEST_F(FileListTest, paths_may_start_at_the_working_directory) {
  const fs::path before = fs::current_path();
  fs::create_directory(folder_.path() / "lists");
  write("lists/train.list", "./data_batch_1.bin\n");
  write("lists/test.list", "./test_batch.bin\n");
  fs::current_path(folder_.path());
  const auto source = open_cifar10("lists");
  fs::current_path(before);
  EXPECT_EQ(source->samples(SourceSplit::train), 20);
}

TEST_F(FileListTest, a_faulty_line_is_named_with_the_form_of_a_right_one) {
  expect_refusal(Failure::bad_data, "data_batch_1.bin\ndata_batch_2.bin 3\n",
                 {"line 2 of " + quoted("train.list"), "'data_batch_2.bin 3'", "'test_batch.bin'"});
  expect_refusal(Failure::bad_data, ".\n", {"line 1 of " + quoted("train.list"), "'.'"});
  expect_refusal(Failure::bad_data, "\n \n", {quoted("train.list"), "'test_batch.bin'"});
  expect_refusal(Failure::bad_data, "data_batch_1.bin\n./data_batch_1.bin\n",
                 {"line 2 of " + quoted("train.list"), "line 1 of " + quoted("train.list")});
  expect_refusal(Failure::bad_data, "test_batch.bin\n",
                 {"line 1 of " + quoted("test.list"), "line 1 of " + quoted("train.list")});
}

// A hard link to a listed file was counted as a second file.
TEST_F(FileListTest, a_file_with_two_names_is_listed_once) {
  fs::create_hard_link(folder_.path() / "data_batch_1.bin", folder_.path() / "hard.bin");
  fs::create_symlink("data_batch_1.bin", folder_.path() / "soft.bin");
  for (const char* const other : {"hard.bin", "soft.bin"}) {
    expect_refusal(Failure::bad_data, std::string("data_batch_1.bin\n") + other + "\n",
                   {"line 2 of " + quoted("train.list"), other, "line 1 of " + quoted("train.list")});
  }
}

// The message contained the whole line.
TEST_F(FileListTest, only_the_beginning_of_a_long_line_is_shown) {
  write("train.list", std::string(100'000, 'x') + "\n");
  const std::string message = message_of(Failure::bad_data, [&] { open(); });
  EXPECT_NE(message.find("'" + std::string(200, 'x') + "...'"), message.npos) << message;
  EXPECT_LT(message.size(), 1'000);
}

TEST_F(FileListTest, one_list_wants_the_other) {
  expect_error(Failure::usage, {quoted("test.list"), "train.list"}, [&] { open(); });
  fs::rename(folder_.path() / "test.list", folder_.path() / "train.list");
  expect_error(Failure::usage, {quoted("train.list"), "test.list"}, [&] { open(); });
}

// They were called truncated.
TEST_F(FileListTest, pickled_batches_are_called_so) {
  write("part", "\x80\x02}q\x01(U");
  expect_refusal(Failure::usage, "part\n", {quoted("part"), "Python"});
}

TEST_F(FileListTest, mnist_names_who_reads_lists) {
  TemporaryFolder other;
  write_file_atomically(other.path() / "train.list", "data/train\n");
  expect_error(Failure::usage, {other.path().string(), "train.list", "--source"}, [&] { open_mnist(other.path()); });
  expect_error(Failure::usage, {"train.list' is not a directory"}, [&] { open_mnist(other.path() / "train.list"); });
}

}  // namespace lockstep::file_list_test
