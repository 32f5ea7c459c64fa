// Published data sets in other forms than the usual one: what is read, and what a refusal of the others says.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <zlib.h>

#include "base/io/file.hpp"
#include "dataset/sources/idx_file.hpp"
#include "dataset/sources/sample_source.hpp"
#include "support/messages.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::published_forms_test {

std::string big_endian(std::uint32_t number) {
  std::string bytes;
  for (const int shift : {24, 16, 8, 0}) bytes += static_cast<char>(number >> shift);
  return bytes;
}

std::string idx(char type, const std::vector<std::uint32_t>& dims) {
  std::string bytes = {0, 0, type, static_cast<char>(dims.size())};
  for (const std::uint32_t dim : dims) bytes += big_endian(dim);
  return bytes;
}

class PublishedFormsTest : public ::testing::Test {
 protected:
  void write(const std::string& file, const std::string& bytes) const { write_file_atomically(path(file), bytes); }
  void write_packed(const std::string& file, const std::string& bytes) const {
    const gzFile packed = gzopen(path(file).c_str(), "wb1");
    gzwrite(packed, bytes.data(), static_cast<unsigned>(bytes.size()));
    gzclose(packed);
  }
  std::filesystem::path path(const std::string& file) const { return folder_.path() / file; }
  std::string quoted(const std::string& file) const { return "'" + path(file).string() + "'"; }
  std::string quoted_folder() const { return "'" + folder_.path().string() + "'"; }
  TemporaryFolder folder_;
};

std::int64_t peak_kibibytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

// 2.9 MB that unpack to far more than the header states took 2.27 GB of memory.
TEST_F(PublishedFormsTest, no_more_is_unpacked_than_the_header_states) {
  constexpr std::size_t bomb_bytes = std::size_t{256} << 20;
  const gzFile packed = gzopen(path("images.gz").c_str(), "wb1");
  const std::string header = idx(8, {2, 2, 3});
  gzwrite(packed, header.data(), static_cast<unsigned>(header.size()));
  const std::string zeros(std::size_t{1} << 20, '\0');
  for (std::size_t bytes = 0; bytes < bomb_bytes; bytes += zeros.size()) {
    gzwrite(packed, zeros.data(), static_cast<unsigned>(zeros.size()));
  }
  gzclose(packed);
  const std::int64_t before = peak_kibibytes();
  expect_error(Failure::bad_data, {"12"}, [&] { read_idx_images(path("images")); });
  EXPECT_LT(peak_kibibytes() - before, 32 << 10);
}

TEST_F(PublishedFormsTest, a_plain_file_that_goes_on_is_refused_too) {
  write("labels", idx(8, {2}) + "\1\2\3");
  expect_error(Failure::bad_data, {}, [&] { read_idx_labels(path("labels")); });
  write("labels", idx(8, {2}).substr(0, 6));
  expect_error(Failure::bad_data, {}, [&] { read_idx_labels(path("labels")); });
}

// A header that claims a gibibyte takes none of it.
TEST_F(PublishedFormsTest, what_a_header_claims_is_not_taken_before_it_is_there) {
  write_packed("images.gz", idx(8, {1 << 10, 1 << 10, 1 << 10}) + "few");
  const std::int64_t before = peak_kibibytes();
  expect_error(Failure::bad_data, {}, [&] { read_idx_images(path("images")); });
  EXPECT_LT(peak_kibibytes() - before, 32 << 10);
}

class QmnistTest : public PublishedFormsTest {
 protected:
  QmnistTest() {
    write_packed("qmnist-train-images-idx3-ubyte.gz", idx(8, {2, 2, 3}) + "abcdefghijkl");
    write_packed("qmnist-train-labels-idx2-int.gz", labels({4, 9}));
    write_packed("qmnist-test-images-idx3-ubyte.gz", idx(8, {1, 2, 3}) + "mnopqr");
    write_packed("qmnist-test-labels-idx2-int.gz", labels({7}));
  }
  static std::string labels(const std::vector<std::uint32_t>& classes) {
    std::string bytes = idx(12, {static_cast<std::uint32_t>(classes.size()), 8});
    for (const std::uint32_t label : classes) {
      bytes += big_endian(label);
      for (std::uint32_t column = 1; column < 8; ++column) bytes += big_endian(1000 * column);
    }
    return bytes;
  }
};

TEST_F(QmnistTest, the_class_is_the_first_of_a_labels_numbers) {
  const auto source = open_idx_set(folder_.path(), {});
  EXPECT_EQ(source->description().name, "qmnist");
  EXPECT_EQ(source->description().classes.size(), 10U);
  SourceSample sample;
  EXPECT_EQ(source->read(SourceSplit::train, 0, sample), 4);
  EXPECT_EQ(source->read(SourceSplit::train, 1, sample), 9);
  EXPECT_EQ(source->read(SourceSplit::test, 0, sample), 7);
}

TEST_F(QmnistTest, labels_that_are_none_are_refused) {
  write_packed("qmnist-test-labels-idx2-int.gz", labels({256}));
  expect_error(Failure::bad_data, {"256"}, [&] { open_idx_set(folder_.path(), {}); });
  write_packed("qmnist-test-labels-idx2-int.gz", idx(12, {1, 2}) + std::string(8, '\0'));
  expect_error(Failure::bad_data, {}, [&] { open_idx_set(folder_.path(), {}); });
}

TEST_F(QmnistTest, mnist_names_the_command_that_reads_it) {
  expect_error(Failure::usage, {quoted_folder(), "qmnist-train-images-idx3-ubyte"},
               [&] { open_mnist(folder_.path()); });
}

TEST_F(PublishedFormsTest, other_versions_of_cifar_are_named_with_the_one_that_is_read) {
  write("meta", "");
  write("train", "");
  expect_error(Failure::usage, {quoted_folder(), "Python", "CIFAR-100", "'train'", "cifar-100-binary.tar.gz"},
               [&] { open_cifar100(folder_.path(), Cifar100Labels::fine); });
  write("data_batch_1", "");
  expect_error(Failure::usage, {quoted_folder(), "Python", "CIFAR-10", "'data_batch_1'", "cifar-10-binary.tar.gz"},
               [&] { open_cifar10(folder_.path()); });
  std::filesystem::rename(path("data_batch_1"), path("data_batch_1.mat"));
  expect_error(Failure::usage, {quoted_folder(), "MATLAB", "CIFAR-10", "'data_batch_1.mat'", "cifar-10-binary.tar.gz"},
               [&] { open_cifar10(folder_.path()); });
}

TEST_F(PublishedFormsTest, arrays_and_archives_are_named_with_what_to_do) {
  write("mnist.npz", "");
  expect_error(Failure::usage, {quoted_folder(), "mnist.npz", "make_shards --help", "make_shards images"},
               [&] { open_mnist(folder_.path()); });
  expect_error(Failure::usage, {quoted_folder(), "NumPy", "mnist.npz"}, [&] { open_idx_set(folder_.path(), {}); });
  expect_error(Failure::usage, {quoted("mnist.npz"), "NumPy"}, [&] { open_mnist(path("mnist.npz")); });
  std::filesystem::rename(path("mnist.npz"), path("x_train.npy"));
  expect_error(Failure::usage, {quoted_folder(), "NumPy", "'x_train.npy'"}, [&] { open_idx_set(folder_.path(), {}); });
  std::filesystem::rename(path("x_train.npy"), path("train.parquet"));
  expect_error(Failure::usage, {quoted_folder(), "Parquet"}, [&] { open_cifar10(folder_.path()); });
  std::filesystem::rename(path("train.parquet"), path("cifar-10-binary.tar.gz"));
  expect_error(Failure::usage, {quoted_folder(), "cifar-10-binary.tar.gz"}, [&] { open_cifar10(folder_.path()); });
  write("train-images-idx3-ubyte", "\x93NUMPY\x01");
  expect_error(Failure::bad_data, {}, [&] { open_mnist(folder_.path()); });
}

}  // namespace lockstep::published_forms_test
