// metrics.jsonl: a file that people watch while it grows, line by line. A disk that is full, or a folder that somebody
// removed, ends no training: what cannot be written is kept in memory and written as soon as that is possible.
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
  // Opens metrics.jsonl in the folder of `lock`, which outlives this, to append to it. Throws Error(usage) if it
  // cannot.
  explicit MetricsLog(FolderLock& lock);

  // A line, without its end. Warns of the first one that cannot be written, and says when all are. Throws
  // Error(out_of_step) if the folder is another job's by now.
  void append(std::string_view line);
  // Tries again to write what is left over. Returns whether nothing is.
  bool flush();
  std::int64_t lines_left() const { return lines_left_; }

 private:
  bool write_left();
  void follow_name();

  FolderLock& lock_;
  std::filesystem::path path_;
  std::unique_ptr<Descriptor> file_;
  std::string left_;  // whole lines
  std::int64_t lines_left_ = 0;
  bool has_warned_ = false;
};

}  // namespace lockstep
