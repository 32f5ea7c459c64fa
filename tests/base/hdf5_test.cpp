#include "base/io/hdf5.hpp"

#include <gtest/gtest.h>

#include <new>
#include <string>
#include <thread>

#include "base/io/hdf5_memory.hpp"
#include "support/memory_limit.hpp"

namespace lockstep::hdf5_test {

// A checkpoint's writer printed HDF5's stack of source files: silence was that of the main thread alone.
TEST(Hdf5Test, a_thread_that_works_on_a_file_in_memory_prints_no_stack) {
  silence_hdf5();
  testing::internal::CaptureStderr();
  std::string message;
  std::thread([&message] {
    const Hid<H5Pclose> access = hdf5_core_access_plist();
    const Hid<H5Fclose> file(H5Fopen("/no/such/file", H5F_ACC_RDONLY, access));
    message = hdf5_error_message();
  }).join();
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  // HDF5 1.14 has more words around these.
  EXPECT_NE(message.find("open failed: unable to open file"), std::string::npos) << message;
  EXPECT_EQ(message.find(".c"), std::string::npos) << message;
}

TEST(Hdf5Test, what_hdf5_refuses_is_told_without_a_place_in_our_sources) {
  silence_hdf5();
  try {
    check_h5(H5Fclose(H5I_INVALID_HID), "close a file");
    FAIL() << "there is none";
  } catch (const Error& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find(" close a file: "), std::string::npos) << message;
    EXPECT_EQ(message.find(".cpp"), std::string::npos) << message;
  }
}

// The names of 8000 classes did not fit into an attribute.
TEST(Hdf5Test, a_long_list_of_texts_continues_in_further_attributes) {
  for (const std::size_t length : {1U, 9U, 255U, 4096U}) {
    const std::vector<std::string> texts(300'000 / length, std::string(length, 'x'));
    const Hid<H5Pclose> access = hdf5_core_access_plist();
    const Hid<H5Fclose> file(check_h5(H5Fcreate("texts", H5F_ACC_TRUNC, H5P_DEFAULT, access), "create"));
    const std::size_t empty_bytes = hdf5_image(file).size();
    hdf5_write_texts(file, "texts", texts);
    EXPECT_LE(hdf5_image(file).size() - empty_bytes, hdf5_texts_bytes(texts)) << length;
    EXPECT_GT(H5Aexists(file, "texts5"), 0) << length;
    EXPECT_EQ(H5Aexists(file, "texts6"), 0) << length;
  }
}

TEST(Hdf5Test, a_list_that_fits_is_one_attribute) {
  const std::vector<std::string> texts(65'400, "x");
  const Hid<H5Pclose> access = hdf5_core_access_plist();
  const Hid<H5Fclose> file(check_h5(H5Fcreate("texts", H5F_ACC_TRUNC, H5P_DEFAULT, access), "create"));
  hdf5_write_texts(file, "texts", texts);
  EXPECT_EQ(H5Aexists(file, "texts2"), 0);
}

// With `ulimit -v`, HDF5 crashed when it opened a shard.
TEST(Hdf5Test, a_file_is_not_opened_without_memory) {
  {
    const NoMemoryBeyond limit(rlim_t{4} << 20U);
    EXPECT_THROW(require_memory_for_hdf5(), std::bad_alloc);
    EXPECT_THROW(hdf5_core_access_plist(), std::bad_alloc);
  }
  EXPECT_NO_THROW(require_memory_for_hdf5());
}

}  // namespace lockstep::hdf5_test
