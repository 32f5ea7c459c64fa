// What may stand where a file is expected, and a limit of time for tests that would wait for ever.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>

#include "base/error.hpp"
#include "base/io/descriptor.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep {

enum class SpecialFile { pipe, socket, device, directory, dangling_link, link_loop };
inline constexpr std::array all_special_files = {SpecialFile::pipe,          SpecialFile::socket,
                                                 SpecialFile::device,        SpecialFile::directory,
                                                 SpecialFile::dangling_link, SpecialFile::link_loop};

inline const char* special_file_name(SpecialFile kind) {
  constexpr std::array names = {"pipe", "socket", "device", "directory", "dangling_link", "link_loop"};
  return names.at(static_cast<std::size_t>(kind));
}

// Stands at `path` while it lives; what was there before is removed.
class SpecialFileAt {
 public:
  SpecialFileAt(SpecialFile kind, std::filesystem::path path) : kind_(kind), path_(std::move(path)) {
    std::filesystem::remove_all(path_);
    if (kind == SpecialFile::pipe) make_pipe();
    if (kind == SpecialFile::socket) make_socket();
    if (kind == SpecialFile::device) std::filesystem::create_symlink("/dev/zero", path_);
    if (kind == SpecialFile::directory) std::filesystem::create_directory(path_);
    if (kind == SpecialFile::dangling_link) std::filesystem::create_symlink("nowhere", path_);
    if (kind == SpecialFile::link_loop) std::filesystem::create_symlink(path_.filename(), path_);
  }
  SpecialFileAt(const SpecialFileAt&) = delete;
  SpecialFileAt& operator=(const SpecialFileAt&) = delete;
  ~SpecialFileAt() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const char* name() const { return special_file_name(kind_); }
  // What reading it says.
  std::string sentence() const {
    const std::string quoted = "'" + path_.string() + "'";
    constexpr const char* advice = ". Check the path and its permissions.";
    if (kind_ == SpecialFile::dangling_link) return "cannot read " + quoted + ": No such file or directory" + advice;
    if (kind_ == SpecialFile::link_loop) {
      return "cannot read " + quoted + ": Too many levels of symbolic links" + advice;
    }
    return quoted + " is a " + name() + ". Only regular files can be read. Check the path.";
  }

 private:
  void make_pipe() const { EXPECT_EQ(::mkfifo(path_.c_str(), 0600), 0); }
  // Bound by a relative name: the address of a socket holds a hundred bytes.
  void make_socket() const {
    const Descriptor made(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string name = path_.filename().string();
    ASSERT_LT(name.size(), sizeof address.sun_path);
    std::memcpy(address.sun_path, name.c_str(), name.size());
    const std::filesystem::path before = std::filesystem::current_path();
    std::filesystem::current_path(path_.parent_path());
    EXPECT_EQ(::bind(made, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    std::filesystem::current_path(before);
  }

  SpecialFile kind_;
  std::filesystem::path path_;
};

// Ends the test program if it still lives then: SIGALRM, which nobody handles.
class WithinSeconds {
 public:
  explicit WithinSeconds(unsigned seconds) { ::alarm(seconds); }
  WithinSeconds(const WithinSeconds&) = delete;
  WithinSeconds& operator=(const WithinSeconds&) = delete;
  ~WithinSeconds() { ::alarm(0); }
};

// The words of the Error that `action` ends with.
inline std::string error_sentence(const std::function<void()>& action, Failure failure = Failure::usage) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.failure(), failure) << error.what();
    return error.what();
  }
  return "no error";
}

}  // namespace lockstep
