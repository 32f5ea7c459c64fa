// What people read of exceptions that are not ours.
#include "base/current_error.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <new>
#include <stdexcept>

#include "base/output_closed.hpp"
#include "support/messages.hpp"

namespace lockstep::current_error_test {

template <typename Exception>
Error error_of(const Exception& exception) {
  try {
    throw exception;
  } catch (...) {
    return current_error();
  }
}

TEST(CurrentErrorTest, an_error_keeps_its_failure_and_names_the_option_of_its_path) {
  set_stated_paths({{"--data", "/data/a"}});
  const Error error = error_of(Error(Failure::bad_data, "'/data/a/x.h5' is damaged."));
  set_stated_paths({});
  EXPECT_EQ(error.failure(), Failure::bad_data);
  EXPECT_STREQ(error.what(), "'/data/a/x.h5' (--data) is damaged.");
}

TEST(CurrentErrorTest, memory_that_no_container_gets_is_out_of_memory) {
  EXPECT_EQ(error_of(std::bad_alloc()).failure(), Failure::out_of_memory);
  const Error error = error_of(std::length_error("vector::reserve"));
  EXPECT_EQ(error.failure(), Failure::out_of_memory);
  expect_message(error.what(), {"smaller batch"});
}

TEST(CurrentErrorTest, exceptions_of_the_system_have_its_words) {
  const std::error_code denied = std::make_error_code(std::errc::permission_denied);
  expect_message(error_of(std::filesystem::filesystem_error("cannot look", "/data/b", denied)).what(), {"'/data/b'"});
  expect_message(error_of(std::system_error(denied)).what(), {"denied"});
}

// A thread that could not be started ended a training with "the system refused a request".
TEST(CurrentErrorTest, a_thread_that_does_not_start_is_out_of_memory) {
  const Error error = error_of(std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again)));
  EXPECT_EQ(error.failure(), Failure::out_of_memory);
  expect_message(error.what(), {"thread", "ulimit"});
}

TEST(CurrentErrorTest, other_exceptions_are_failures_too) {
  EXPECT_STREQ(error_of(std::runtime_error("odd")).what(), "odd");
  expect_message(error_of(7).what(), {"(a bug)"});
}

TEST(CurrentErrorTest, nothing_is_said_where_nobody_reads) {
  const Error error = error_of(OutputClosed());
  EXPECT_EQ(error.failure(), Failure::output_closed);
  EXPECT_EQ(error.exit_code(), 141);
  EXPECT_STREQ(error.what(), "");
}

}  // namespace lockstep::current_error_test
