// What several processes may set out to make, a file or all that is in a folder: one of them leases it, the others see
// that it has. A lease is the system's lock (flock), so it ends with the process that has it.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/io/descriptor.hpp"

namespace lockstep {

// A file in the making. What a process that ended has left is leased again, and begun again.
class LeasedFile {
 public:
  // Leases `name`, which every process that makes the file gives alike: a new file, or an old one, emptied. Null where
  // another has the lease, or a file of another user is in the way. Links are not followed, hard links are broken, and
  // nobody is waited for. Throws std::system_error with the system's reason, EEXIST where something other than a file
  // has the name.
  static std::unique_ptr<LeasedFile> lease(std::filesystem::path name);
  LeasedFile(const LeasedFile&) = delete;
  LeasedFile& operator=(const LeasedFile&) = delete;
  ~LeasedFile();  // removes it, if it was not published and still has its name

  int descriptor() const { return file_; }  // open for writing
  // What was written is brought to disk, and the file gets its name, in place of what has it. False, and nothing
  // changes, if somebody else removed or replaced the unfinished file. Throws std::system_error likewise.
  bool publish(const std::filesystem::path& path);

 private:
  LeasedFile(std::filesystem::path name, Descriptor file) : name_(std::move(name)), file_(std::move(file)) {}
  bool has_its_name() const noexcept;

  std::filesystem::path name_;  // empty once it is published
  Descriptor file_;
};

// Who has the lease on `name`, for messages: "user 'ann', process 4242, stopped". The process is left out where it is
// not one of this node.
std::string describe_lease_holder(const std::filesystem::path& name);

// Until what is returned is closed. Nothing where another process has the lease; where the file system knows no locks
// everyone has it.
std::optional<Descriptor> lease_folder(const std::filesystem::path& folder);

}  // namespace lockstep
