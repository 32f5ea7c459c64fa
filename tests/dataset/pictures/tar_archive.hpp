// Archives for tests, made by the system's tar.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace lockstep::test {

// All that is in `folder`, in the order of names, in a format that tar knows: gnu, ustar, pax.
inline void make_tar(const std::filesystem::path& archive, const std::filesystem::path& folder,
                     const std::string& format = "gnu") {
  const std::string command = "cd '" + folder.string() + "' && find . -mindepth 1 -printf '%P\\0' | sort -z | " +
                              "tar --create --no-recursion --null --files-from=- --format=" + format + " --file='" +
                              archive.string() + "'";
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
}

}  // namespace lockstep::test
