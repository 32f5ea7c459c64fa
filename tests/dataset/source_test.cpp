#include <gtest/gtest.h>
#include <zlib.h>

#include <fstream>
#include <memory>
#include <set>
#include <string_view>

#include "base/error.hpp"
#include "dataset/sources/source_table.hpp"
#include "support/message_of.hpp"
#include "support/messages.hpp"
#include "support/mutation.hpp"
#include "support/samples/small_cifar.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::source_test {

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
  expect_error(Failure::bad_data, {"50000"}, [&] { open_cifar10(folder_.path()); });
}

TEST_F(CifarTest, label_255_is_named) {
  std::string records = small_cifar_records(4);
  records[7 * 3073] = static_cast<char>(255);
  write_file_atomically(folder_.path() / "data_batch_4.bin", records);
  expect_error(Failure::bad_data, {"255"}, [&] { open_cifar10(folder_.path()); });
}

TEST_F(CifarTest, a_missing_file_is_named) {
  std::filesystem::remove(folder_.path() / "test_batch.bin");
  expect_error(Failure::usage, {}, [&] { open_cifar10(folder_.path()); });
}

TEST_F(CifarTest, a_source_that_is_no_directory_is_named) {
  expect_error(Failure::usage, {"--source"}, [&] { open_cifar10(path("test_batch.bin")); });
}

TEST_F(CifarTest, of_two_labels_the_fine_one_counts_unless_the_coarse_one_is_asked_for) {
  const std::string record = std::string("\x13\x63", 2) + std::string(3072, 'x');
  write_file_atomically(folder_.path() / "train.bin", record);
  write_file_atomically(folder_.path() / "test.bin", record);
  SourceSample image;
  const auto fine = open_cifar100(folder_.path(), Cifar100Labels::fine);
  EXPECT_EQ(fine->read(SourceSplit::test, 0, image), 99);
  EXPECT_EQ(fine->description().classes.size(), 100U);
  EXPECT_TRUE(fine->description().source.starts_with("cifar100 (binary version) from ")) << "shards' bytes changed";
  const auto coarse = open_cifar100(folder_.path(), Cifar100Labels::coarse);
  EXPECT_EQ(coarse->read(SourceSplit::test, 0, image), 19);
  EXPECT_EQ(image.picture.pixels.front(), 'x');
  EXPECT_EQ(coarse->description().classes.size(), 20U);
  EXPECT_EQ(coarse->description().classes[19], "vehicles_2");
  EXPECT_TRUE(coarse->description().source.starts_with("cifar100_coarse (binary version, coarse labels) from "));
  write_file_atomically(folder_.path() / "train.bin", "\x14" + record.substr(1));
  expect_error(Failure::bad_data, {"20"}, [&] { open_cifar100(folder_.path(), Cifar100Labels::coarse); });
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
  std::string message() const {
    return message_of(Failure::bad_data, [&] { open_mnist(folder_.path()); });
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

// Label 13 was refused as one of 10 classes, and a set of four classes got ten.
TEST_F(IdxTest, a_set_of_other_classes_is_not_taken_for_mnist) {
  write("t10k-labels-idx1-ubyte", idx({1}, "\x0d"));
  expect_message(message(), {"--classes", "make_shards idx"});
  write("train-labels-idx1-ubyte", idx({2}, "\x03\x01"));
  write("t10k-labels-idx1-ubyte", idx({1}, "\x01"));
  expect_error(Failure::bad_data, {"--classes", "make_shards idx"}, [&] { open_fashion_mnist(folder_.path()); });
}

class IdxSetTest : public IdxTest {
 protected:
  std::vector<std::string> classes(const IdxSet& set) const {
    return open_idx_set(folder_.path(), set)->description().classes;
  }
  std::string refusal(Failure failure, const IdxSet& set = {}) const {
    return message_of(failure, [&] { open_idx_set(folder_.path(), set); });
  }
  std::string quoted_folder() const { return "'" + folder_.path().string() + "'"; }
  // As EMNIST's files are called.
  void rename(const char* from, const char* to) const {
    std::filesystem::rename(folder_.path() / from, folder_.path() / to);
  }
  void call_them_letters() const {
    rename("train-images-idx3-ubyte", "emnist-letters-train-images-idx3-ubyte");
    rename("train-labels-idx1-ubyte", "emnist-letters-train-labels-idx1-ubyte");
    rename("t10k-images-idx3-ubyte", "emnist-letters-test-images-idx3-ubyte");
    rename("t10k-labels-idx1-ubyte", "emnist-letters-test-labels-idx1-ubyte");
  }
};

TEST_F(IdxSetTest, labels_say_the_number_of_classes_unless_it_is_given) {
  write("train-labels-idx1-ubyte", idx({2}, "\x03\x01"));
  EXPECT_EQ(classes({}), (std::vector<std::string>{"0", "1", "2", "3"}));
  EXPECT_EQ(classes({.classes = 47}).size(), 47U);
  // An interrupted run does not go on with another number.
  EXPECT_NE(open_idx_set(folder_.path(), {.classes = 47})->description().source.find("idx (IDX files, 47 classes)"),
            std::string::npos);
}

TEST_F(IdxSetTest, a_label_beyond_the_classes_names_the_option) {
  expect_message(refusal(Failure::bad_data, {.classes = 9}), {"--classes", "10"});
  write("t10k-labels-idx1-ubyte", idx({1}, "\x0d"));
  expect_message(refusal(Failure::bad_data), {"--classes", "13"});
  EXPECT_EQ(classes({.classes = 14}).size(), 14U);
}

TEST_F(IdxSetTest, files_are_found_whatever_their_names_begin_with) {
  call_them_letters();
  const auto source = open_idx_set(folder_.path(), {});
  EXPECT_EQ(source->description().name, "emnist-letters");
  EXPECT_EQ(source->samples(SourceSplit::train), 2);
  EXPECT_EQ(source->samples(SourceSplit::test), 1);
  rename("emnist-letters-train-images-idx3-ubyte", "emnist-letters-train-images.idx3-ubyte");
  EXPECT_EQ(open_idx_set(folder_.path(), {.prefix = "emnist-letters"})->samples(SourceSplit::train), 2);
}

TEST_F(IdxSetTest, which_set_is_meant_is_never_guessed) {
  const std::string other = read_file(folder_.path() / "train-labels-idx1-ubyte", 1000);
  call_them_letters();
  write("emnist-digits-train-labels-idx1-ubyte", other);
  expect_message(refusal(Failure::usage), {"--prefix", quoted_folder(), "emnist-digits"});
  EXPECT_EQ(classes({.prefix = "emnist-letters"}).size(), 10U);
  expect_message(refusal(Failure::usage, {.prefix = "letters"}), {"--prefix", quoted_folder(), "letters"});
  expect_message(refusal(Failure::usage, {.prefix = "emnist-digits"}), {quoted_folder()});
  write("emnist-letters-t10k-labels-idx1-ubyte", other);
  expect_message(refusal(Failure::usage, {.prefix = "emnist-letters"}),
                 {quoted_folder(), "emnist-letters-t10k-labels-idx1-ubyte", "emnist-letters-test-labels-idx1-ubyte"});
}

TEST_F(IdxSetTest, a_folder_without_a_set_is_named) {
  const TemporaryFolder empty;
  expect_error(Failure::usage, {"--source", empty.path().string()}, [&] { open_idx_set(empty.path(), {}); });
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
  expect_message(message(), {});
}

TEST_F(IdxTest, a_header_that_promises_more_than_there_is_is_refused) {
  write("train-images-idx3-ubyte", idx({2, 2, 4}, "abcdefghijkl"));
  expect_message(message(), {"12"});
}

TEST_F(IdxTest, sizes_whose_product_overflows_are_refused) {
  write("train-images-idx3-ubyte", idx({0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF}, "abc"));
  expect_message(message(), {});
}

TEST_F(IdxTest, another_kind_of_file_is_refused) {
  write("train-labels-idx1-ubyte", "no labels");
  expect_message(message(), {});
}

TEST_F(IdxTest, labels_and_images_must_be_as_many) {
  write("train-labels-idx1-ubyte", idx({1}, std::string(1, '\0')));
  expect_message(message(), {});
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
      const std::string message = message_of(Failure::usage, [&] { entry.make({empty.path(), 0, 0}); });
      EXPECT_NE(message.find(empty.path().string()), std::string::npos) << entry.name << ": " << message;
    }
  }
  EXPECT_EQ(names, (std::set<std::string_view>{"cifar10", "cifar100", "images", "mnist", "fashion_mnist", "idx",
                                               "synthetic"}));
}

}  // namespace lockstep::source_test
