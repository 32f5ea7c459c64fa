// metrics.jsonl: a log that users follow while it grows. A full disk or a removed folder does not stop the training.
// Lines that cannot be written are kept in memory and written later.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "base/io/descriptor.hpp"
#include "files/folder/folder_lock.hpp"

namespace lockstep {

class MetricsLog {
 public:
  // Opens metrics.jsonl in the folder of `lock` for appending. `lock` outlives this. Throws Error(usage) on failure.
  explicit MetricsLog(FolderLock& lock);

  // Appends a line, given without newline. Warns about the first line that cannot be written, and logs when all are
  // written. Throws Error(out_of_step) if another job has taken over the folder.
  void append(std::string_view line);
  // Retries the remaining lines. Returns whether all are written.
  bool flush();
  std::int64_t lines_left() const { return lines_left_; }
  // Call at the end of a completed training. Throws Error if lines could not be written.
  void finish();

 private:
  bool write_left();
  void follow_name();

  FolderLock& lock_;
  std::filesystem::path path_;
  std::unique_ptr<Descriptor> file_;
  std::string left_;  // remaining lines
  std::int64_t lines_left_ = 0;
  bool has_warned_ = false;
};

}  // namespace lockstep
