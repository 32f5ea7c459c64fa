#include "base/system_failure.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <string>

#include "support/messages.hpp"

namespace lockstep::system_failure_test {

// Every reason for which a file could not be written was answered with "Choose a folder that you may write to."
TEST(SystemFailureTest, each_reason_has_its_own_advice) {
  const auto message = [](int error_number) {
    return std::string(system_failure("cannot write 'x'", error_number, Access::writing).what());
  };
  expect_message(message(ENOSPC), {"x"});
  expect_message(message(EROFS), {"x"});
  expect_message(message(EMFILE), {"x"});
  expect_message(message(EFBIG), {"x"});
  expect_message(message(ENFILE), {"x"});
  expect_message(message(ENOMEM), {"x"});
  expect_message(message(EIO), {"x"});
}

TEST(SystemFailureTest, advice_goes_by_what_was_tried) {
  expect_message(std::string(remedy_for(EACCES, Access::reading).advice), {});
  expect_message(std::string(remedy_for(EACCES, Access::writing).advice), {});
  expect_message(std::string(remedy_for(EROFS, Access::shared_memory).advice), {});
  expect_message(std::string(remedy_for(ENOSPC, Access::shared_memory).advice), {"/dev/shm"});
  expect_message(std::string(remedy_for(EIO, Access::shared_memory).advice), {});
}

TEST(SystemFailureTest, why_it_matters_stands_in_brackets) {
  const Error error = system_failure("cannot write 'x'", ENOENT, Access::writing, "--output");
  expect_message(error.what(), {"'x'", "(--output)"});
  EXPECT_EQ(error.failure(), Failure::usage);
}

TEST(SystemFailureTest, what_may_pass_is_tried_again) {
  for (const int error_number : {ENOSPC, EDQUOT, ENFILE, EAGAIN, EIO, ESTALE, ETIMEDOUT}) {
    EXPECT_EQ(remedy_for(error_number, Access::writing).failure, Failure::other) << error_number;
  }
  for (const int error_number : {EACCES, EROFS, ENOENT, ELOOP, EMFILE, EFBIG}) {
    EXPECT_EQ(remedy_for(error_number, Access::writing).failure, Failure::usage) << error_number;
  }
  EXPECT_EQ(remedy_for(ENOMEM, Access::writing).failure, Failure::out_of_memory);
}

}  // namespace lockstep::system_failure_test
