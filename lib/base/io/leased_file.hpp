// Leases on files and folders that several processes may try to create. One process gets the lease, and the others see
// that it is taken. A lease is a kernel lock (flock), so it ends with its process.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/io/descriptor.hpp"

namespace lockstep {

// An unfinished file under a lease. If its process ends, the next process that leases it writes it from the start.
class LeasedFile {
 public:
  // Leases `name`, the same for every process that writes this file: a new file, or an existing one, which is emptied.
  // Null if another process has the lease, or if a file of another user is in the way. Never blocks, does not follow
  // symbolic links, and breaks hard links. Throws std::system_error with the system's reason: EEXIST if something other
  // than a file has the name.
  static std::unique_ptr<LeasedFile> lease(std::filesystem::path name);
  LeasedFile(const LeasedFile&) = delete;
  LeasedFile& operator=(const LeasedFile&) = delete;
  ~LeasedFile();  // removes the file unless it was published or its name belongs to another file

  int descriptor() const { return file_; }  // open for writing
  // Syncs the content to disk and renames the file to `path`, replacing what is there. False, with nothing changed, if
  // somebody else removed or replaced the unfinished file. Throws std::system_error with the system's reason.
  bool publish(const std::filesystem::path& path);

 private:
  LeasedFile(std::filesystem::path name, Descriptor file) : name_(std::move(name)), file_(std::move(file)) {}
  bool has_its_name() const noexcept;

  std::filesystem::path name_;  // empty once published
  Descriptor file_;
};

// The holder of the lease on `name`, for messages: "user 'ann', process 4242, stopped". Names no process if the holder
// does not run on this node.
std::string describe_lease_holder(const std::filesystem::path& name);

// Leases the folder until the returned descriptor is closed. Nothing if another process has the lease. On a file system
// without locks every process gets it.
std::optional<Descriptor> lease_folder(const std::filesystem::path& folder);

}  // namespace lockstep
