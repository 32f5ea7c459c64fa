// What is in a new training's way is kept: it moves into FOLDER/set-aside-1, or under the next number that is free.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "files/folder/folder_lock.hpp"

namespace lockstep {

// What becomes of what was made beyond the step that a training goes on from.
enum class LaterOutput : std::uint8_t {
  repeated,  // the same will be made again
  set_aside  // the training takes another course: it is set aside
};

class SetAside {
 public:
  // Of the files in the folder of `lock`, which outlives this. Makes no folder before something goes into it.
  explicit SetAside(FolderLock& lock) : lock_(lock) {}

  // Does nothing where there is no such file. Throws as system_failure() if it cannot be done.
  void move(const std::string& name);
  void copy(const std::string& name);

  // Where things went; empty: nothing did.
  const std::filesystem::path& path() const { return path_; }

 private:
  bool exists(const std::string& name) const;
  void make();

  FolderLock& lock_;
  std::filesystem::path path_;
};

}  // namespace lockstep
