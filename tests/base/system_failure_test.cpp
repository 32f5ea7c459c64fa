#include "base/system_failure.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <string>

namespace lockstep {
namespace {

// Every reason for which a file could not be written was answered with "Choose a folder that you may write to."
TEST(SystemFailureTest, each_reason_has_its_own_advice) {
  const auto message = [](int error_number) {
    return std::string(system_failure("cannot write 'x'", error_number, Access::writing).what());
  };
  EXPECT_EQ(message(ENOSPC), "cannot write 'x': No space left on device. Free some space there and run again.");
  EXPECT_EQ(message(EROFS), "cannot write 'x': Read-only file system. Choose a folder that you may write to.");
  EXPECT_EQ(message(EMFILE), "cannot write 'x': Too many open files. Raise the limit on open files (ulimit -n).");
  EXPECT_EQ(message(EFBIG), "cannot write 'x': File too large. Raise the limit on the size of a file (ulimit -f).");
  EXPECT_EQ(message(ENFILE),
            "cannot write 'x': Too many open files in system. All programs on this node together have too many files "
            "open: end some of them.");
  EXPECT_EQ(message(ENOMEM),
            "cannot write 'x': Cannot allocate memory. Start fewer ranks on this node, or raise the job's limit on "
            "memory.");
  EXPECT_EQ(message(EIO), "cannot write 'x': Input/output error. Is the file system in order?");
}

TEST(SystemFailureTest, advice_goes_by_what_was_tried) {
  EXPECT_EQ(remedy_for(EACCES, Access::reading).advice, "Check the path and its permissions.");
  EXPECT_EQ(remedy_for(EACCES, Access::writing).advice, "Choose a folder that you may write to.");
  EXPECT_EQ(remedy_for(EROFS, Access::shared_memory).advice, "Mount /dev/shm as a tmpfs that everybody may write to.");
  EXPECT_EQ(remedy_for(ENOSPC, Access::shared_memory).advice, "Enlarge /dev/shm.");
  EXPECT_EQ(remedy_for(EIO, Access::shared_memory).advice, "Is /dev/shm in order?");
}

TEST(SystemFailureTest, why_it_matters_stands_in_brackets) {
  const Error error = system_failure("cannot write 'x'", ENOENT, Access::writing, "--output");
  EXPECT_STREQ(error.what(),
               "cannot write 'x': No such file or directory (--output). Choose a folder that you may write to.");
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

}  // namespace
}  // namespace lockstep
