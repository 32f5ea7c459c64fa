// search.jsonl: the whole state of a search, one JSON object per line. The first line has the space. Each further line
// has a result, a failure or a restart of a trial, and the decisions that follow. A line is on the disk before the
// search acts on it.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/io/descriptor.hpp"

namespace lockstep {

class Journal {
 public:
  // Opens the file if there is one. Only one process at a time may have it open (files/folder/folder_lock). Drops a
  // damaged last line with a warning. Throws Error(bad_data) if another line is damaged, and as system_failure() or
  // RegularFile if the file cannot be read or written.
  explicit Journal(std::filesystem::path file);

  // The lines that the file had when it was opened.
  const std::vector<nlohmann::json>& lines() const { return lines_; }
  const std::filesystem::path& path() const { return file_; }

  // Returns once the line is on the disk. The first line creates the file. Throws as system_failure().
  void append(const nlohmann::json& line);

 private:
  void read();

  std::filesystem::path file_;
  Descriptor descriptor_{-1};  // -1: there is no file yet
  std::vector<nlohmann::json> lines_;
};

}  // namespace lockstep
