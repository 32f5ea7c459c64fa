// Keeps files that are in a new training's way: moves them into FOLDER/set-aside-1, or the next free number.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "files/folder/folder_lock.hpp"

namespace lockstep {

// What to do with output made after the step at which a training resumes.
enum class LaterOutput : std::uint8_t {
  repeated,  // the training will make the same output again
  set_aside  // the training takes a different course, so the output is set aside
};

class SetAside {
 public:
  // For the files in the folder of `lock`, which must outlive this. Creates no folder until it is needed.
  explicit SetAside(FolderLock& lock) : lock_(lock) {}

  // Both do nothing if there is no such file. They throw as system_failure() on failure. Killed meanwhile, they leave
  // the file as it was.
  void move(const std::string& name);
  void copy(const std::string& name);

  // The target folder; empty if nothing was set aside.
  const std::filesystem::path& path() const { return path_; }

 private:
  bool exists(const std::string& name) const;
  void make();

  FolderLock& lock_;
  std::filesystem::path path_;
};

}  // namespace lockstep
