#include <gtest/gtest.h>
#include <zlib.h>

#include <fstream>
#include <memory>
#include <set>
#include <string_view>

#include "base/error.hpp"
#include "dataset/sources/source_table.hpp"
#include "support/mutation.hpp"
#include "support/samples/small_cifar.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep {
namespace {

template <typename Action>
std::string words_of(Failure failure, Action action) {
  try {
    action();
    return "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.failure(), failure);
    return error.what();
  }
}

class CifarTest : public testing::Test {
 protected:
  CifarTest() { write_small_cifar(folder_.path()); }
  std::string path(const char* file) const { return (folder_.path() / file).string(); }
  std::string quoted(const char* file) const { return fmt::format("'{}'", path(file)); }
  TemporaryFolder folder_;
};

TEST_F(CifarTest, planes_become_pixels) {
  const auto source = open_cifar10(folder_.path());
  EXPECT_EQ(source->samples(SourceSplit::train), 100);
  EXPECT_EQ(source->samples(SourceSplit::test), 20);
  const std::string record = small_cifar_records(2).substr(3 * 3073, 3073);
  SourceSample image;
  EXPECT_EQ(source->read(SourceSplit::train, 23, image), record[0]);
  for (std::size_t i : {0U, 1U, 31U, 32U, 1023U}) {
    for (std::size_t c = 0; c < 3; ++c) {
      EXPECT_EQ(image.picture.pixels[i * 3 + c], static_cast<std::uint8_t>(record[1 + c * 1024 + i]));
    }
  }
}

TEST_F(CifarTest, class_names_come_from_the_archive_where_it_has_them) {
  EXPECT_EQ(open_cifar10(folder_.path())->description().classes[3], "cat");
  write_file_atomically(folder_.path() / "batches.meta.txt", "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n\n");
  EXPECT_EQ(open_cifar10(folder_.path())->description().classes[3], "d");
}

TEST_F(CifarTest, a_file_that_is_cut_short_is_named) {
  write_file_atomically(folder_.path() / "data_batch_3.bin", small_cifar_records(3).substr(0, 50'000));
  EXPECT_EQ(
      words_of(Failure::bad_data, [&] { open_cifar10(folder_.path()); }),
      quoted("data_batch_3.bin") +
          " is cut short: 50000 bytes are not a whole number of samples of 3073 bytes. Unpack the archive again?");
}

TEST_F(CifarTest, label_255_is_named) {
  std::string records = small_cifar_records(4);
  records[7 * 3073] = static_cast<char>(255);
  write_file_atomically(folder_.path() / "data_batch_4.bin", records);
  EXPECT_EQ(words_of(Failure::bad_data, [&] { open_cifar10(folder_.path()); }),
            "sample 7 of " + quoted("data_batch_4.bin") +
                " has label 255, but there are 10 classes. Unpack the archive again?");
}

TEST_F(CifarTest, a_missing_file_is_named) {
  std::filesystem::remove(folder_.path() / "test_batch.bin");
  EXPECT_EQ(
      words_of(Failure::usage, [&] { open_cifar10(folder_.path()); }),
      "cannot read '" + path("test_batch.bin") + "': No such file or directory. Check the path and its permissions.");
}

TEST_F(CifarTest, a_source_that_is_no_directory_is_named) {
  EXPECT_EQ(words_of(Failure::usage, [&] { open_cifar10(path("test_batch.bin")); }),
            quoted("test_batch.bin") + " is not a directory (--source). Name the folder that holds data_batch_1.bin.");
}

TEST_F(CifarTest, of_two_labels_the_fine_one_counts) {
  const std::string record = std::string("\x13\x63", 2) + std::string(3072, 'x');
  write_file_atomically(folder_.path() / "train.bin", record);
  write_file_atomically(folder_.path() / "test.bin", record);
  SourceSample image;
  const auto source = open_cifar100(folder_.path());
  EXPECT_EQ(source->read(SourceSplit::test, 0, image), 99);
  EXPECT_EQ(source->description().classes.size(), 100U);
}

std::string idx(const std::vector<std::uint32_t>& dims, const std::string& values) {
  std::string bytes = {0, 0, 8, static_cast<char>(dims.size())};
  for (const std::uint32_t dim : dims) {
    for (const int shift : {24, 16, 8, 0}) bytes += static_cast<char>(dim >> shift);
  }
  return bytes + values;
}

class IdxTest : public testing::Test {
 protected:
  IdxTest() {
    write("train-images-idx3-ubyte", idx({2, 2, 3}, "abcdefghijkl"));
    write("train-labels-idx1-ubyte", idx({2}, std::string("\x04\x09", 2)));
    write("t10k-images-idx3-ubyte", idx({1, 2, 3}, "mnopqr"));
    write("t10k-labels-idx1-ubyte", idx({1}, std::string(1, '\0')));
  }
  void write(const char* file, const std::string& bytes) const { write_file_atomically(folder_.path() / file, bytes); }
  std::string path(const char* file) const { return (folder_.path() / file).string(); }
  std::string quoted(const char* file) const { return fmt::format("'{}'", path(file)); }
  std::string words() const {
    return words_of(Failure::bad_data, [&] { open_mnist(folder_.path()); });
  }
  TemporaryFolder folder_;
};

TEST_F(IdxTest, images_and_labels_are_read) {
  const auto source = open_mnist(folder_.path());
  EXPECT_EQ(source->description().shape, (SampleShape{2, 3, 1}));
  EXPECT_EQ(source->description().kind, SampleKind::digit);
  SourceSample image;
  EXPECT_EQ(source->read(SourceSplit::train, 1, image), 9);
  EXPECT_EQ(std::string(image.picture.pixels.begin(), image.picture.pixels.end()), "ghijkl");
}

TEST_F(IdxTest, packed_files_are_unpacked) {
  const std::string bytes = idx({1, 2, 3}, "packed");
  const gzFile file = gzopen(path("t10k-images-idx3-ubyte.gz").c_str(), "wb");
  gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
  gzclose(file);
  std::filesystem::remove(folder_.path() / "t10k-images-idx3-ubyte");
  SourceSample image;
  EXPECT_EQ(open_fashion_mnist(folder_.path())->read(SourceSplit::test, 0, image), 0);
  EXPECT_EQ(std::string(image.picture.pixels.begin(), image.picture.pixels.end()), "packed");

  const std::string packed = read_file(path("t10k-images-idx3-ubyte.gz"), 1000);
  write("t10k-images-idx3-ubyte.gz", packed.substr(0, packed.size() - 12));
  EXPECT_EQ(words(), quoted("t10k-images-idx3-ubyte.gz") + " is damaged: unexpected end of file. Fetch it again?");
}

TEST_F(IdxTest, a_header_that_promises_more_than_there_is_is_refused) {
  write("train-images-idx3-ubyte", idx({2, 2, 4}, "abcdefghijkl"));
  EXPECT_EQ(words(), quoted("train-images-idx3-ubyte") + " holds 12 values, but its header says 16. Fetch it again?");
}

TEST_F(IdxTest, sizes_whose_product_overflows_are_refused) {
  write("train-images-idx3-ubyte", idx({0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF}, "abc"));
  EXPECT_EQ(words(), quoted("train-images-idx3-ubyte") +
                         " claims an impossible size (4294967295 in dimension 0). Fetch it again?");
}

TEST_F(IdxTest, another_kind_of_file_is_refused) {
  write("train-labels-idx1-ubyte", "no labels");
  EXPECT_EQ(words(),
            quoted("train-labels-idx1-ubyte") + " is no IDX file of bytes in 1 dimensions. Is it the right file?");
}

TEST_F(IdxTest, labels_and_images_must_be_as_many) {
  write("train-labels-idx1-ubyte", idx({1}, std::string(1, '\0')));
  EXPECT_EQ(words(), quoted("train-labels-idx1-ubyte") + " has 1 labels for 2 images. Fetch both again?");
}

// Opens the source after each mutation of one of its files, and reads all of it where it opens.
template <typename Open>
void open_mutated(const std::filesystem::path& path, const Open& open) {
  const std::string whole = read_file(path, 1 << 20);
  testing::internal::CaptureStdout();
  for (std::uint64_t round = 0; round < mutation_rounds(1000); ++round) {
    std::ofstream(path, std::ios::binary) << mutated(whole, round);
    try {
      const std::unique_ptr<SampleSource> source = open();
      SourceSample image;
      for (const SourceSplit split : {SourceSplit::train, SourceSplit::test}) {
        for (std::int64_t sample = 0; sample < source->samples(split); ++sample) {
          const auto label = static_cast<std::size_t>(source->read(split, sample, image).value());
          ASSERT_LT(label, source->description().classes.size()) << round;
          const SampleShape& shape = source->description().shape;
          ASSERT_EQ(image.picture.size, (PictureSize{shape.height, shape.width}));
          ASSERT_EQ(image.picture.pixels.size(), static_cast<std::size_t>(shape.height * shape.width * shape.channels));
        }
      }
    } catch (const Error& error) {
      EXPECT_EQ(error.failure(), Failure::bad_data) << round << ": " << error.what();
    }
  }
  testing::internal::GetCapturedStdout();
  write_file_atomically(path, whole);
}

TEST_F(CifarTest, no_damage_makes_reading_crash_or_believe) {
  open_mutated(folder_.path() / "data_batch_2.bin", [&] { return open_cifar10(folder_.path()); });
  write_file_atomically(folder_.path() / "batches.meta.txt", "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n");
  open_mutated(folder_.path() / "batches.meta.txt", [&] { return open_cifar10(folder_.path()); });
}

TEST_F(IdxTest, no_damage_makes_reading_crash_or_believe) {
  const auto open = [&] { return open_mnist(folder_.path()); };
  open_mutated(path("train-images-idx3-ubyte"), open);
  open_mutated(path("train-labels-idx1-ubyte"), open);
  const std::string bytes = read_file(path("train-images-idx3-ubyte"), 1000);
  const gzFile file = gzopen(path("train-images-idx3-ubyte.gz").c_str(), "wb");
  gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
  gzclose(file);
  std::filesystem::remove(path("train-images-idx3-ubyte"));
  open_mutated(path("train-images-idx3-ubyte.gz"), open);
}

TEST(SyntheticTest, a_sample_depends_on_seed_and_position_only) {
  SourceSample a;
  SourceSample b;
  const auto small = make_synthetic_source(50, 3);
  const auto large = make_synthetic_source(5000, 3);
  EXPECT_EQ(small->read(SourceSplit::train, 42, a), large->read(SourceSplit::train, 42, b));
  EXPECT_EQ(a.picture.pixels, b.picture.pixels);
  large->read(SourceSplit::test, 42, b);
  EXPECT_NE(a.picture.pixels, b.picture.pixels);
  make_synthetic_source(50, 4)->read(SourceSplit::train, 42, b);
  EXPECT_NE(a.picture.pixels, b.picture.pixels);
}

TEST(SyntheticTest, every_class_is_drawn_about_as_often) {
  const auto source = make_synthetic_source(2000, 1);
  std::vector<int> counts(10);
  SourceSample image;
  for (std::int64_t i = 0; i < 2000; ++i)
    ++counts[static_cast<std::size_t>(source->read(SourceSplit::train, i, image).value())];
  for (const int count : counts) EXPECT_NEAR(count, 200, 60);
}

// With the files of all of them in one folder.
TEST_F(IdxTest, each_source_of_the_table_is_opened_under_its_own_name) {
  write_small_cifar(folder_.path());
  for (const char* file : {"train.bin", "test.bin"}) write(file, std::string("\x13\x63", 2) + std::string(3072, 'x'));
  const TemporaryFolder empty;
  std::set<std::string_view> names;
  for (const SourceEntry& entry : known_sources()) {
    EXPECT_TRUE(names.insert(entry.name).second) << entry.name << " stands there twice";
    EXPECT_FALSE(entry.help.empty()) << entry.name;
    if (entry.needs == SourceNeeds::pictures) continue;  // picture_source_test.cpp
    if (entry.needs == SourceNeeds::sample_count) {
      const auto source = entry.make({"", 50, 3});
      EXPECT_EQ(source->description().name, entry.name);
      EXPECT_EQ(source->samples(SourceSplit::train), 50);
      EXPECT_NE(source->description().source.find("seed 3"), std::string::npos);
    } else {
      EXPECT_EQ(entry.make({folder_.path(), 0, 0})->description().name, entry.name);
      const std::string words = words_of(Failure::usage, [&] { entry.make({empty.path(), 0, 0}); });
      EXPECT_NE(words.find(empty.path().string()), std::string::npos) << entry.name << ": " << words;
    }
  }
  EXPECT_EQ(names,
            (std::set<std::string_view>{"cifar10", "cifar100", "images", "mnist", "fashion_mnist", "synthetic"}));
}

}  // namespace
}  // namespace lockstep
