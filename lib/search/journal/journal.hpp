// search.jsonl: the whole state of a search, one JSON object per line. The first line has the space. Each further line
// has a result, a failure or a restart of a trial, and the decisions that follow. A line is on the disk before the
// search acts on it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/io/descriptor.hpp"

namespace lockstep {

// Whether a line of `journal` counts, after `count` lines that do. A shared search numbers its lines: a line whose
// number has been counted was written by a process that had lost the journal's lock without knowing it, so it does not
// follow from the others. Throws Error(bad_data) if lines are missing, or if the number is none.
bool is_next_line(const std::filesystem::path& journal, const nlohmann::json& line, std::int64_t count);

class Journal {
 public:
  // Opens the file if there is one. No other process may use it meanwhile: the caller has the folder's lock
  // (files/folder/folder_lock) or the journal's (journal_lock.hpp). Drops a damaged last line with a warning. Throws
  // Error(bad_data) if another line is damaged, and as system_failure() or RegularFile if the file cannot be read or
  // written.
  explicit Journal(std::filesystem::path file);

  // The lines that the file had when it was opened.
  const std::vector<nlohmann::json>& lines() const { return lines_; }
  const std::filesystem::path& path() const { return file_; }

  // Whether the file has another length than this process knows.
  bool has_changed() const;
  // The lines that other processes have added. The caller has the journal's lock. Throws as the constructor.
  std::vector<nlohmann::json> read_new();

  // Returns once the line is on the disk. The first line creates the file. Throws as system_failure(), and
  // Error(out_of_step) if another process has written at the same time.
  void append(const nlohmann::json& line);

 private:
  void require_own_end() const;

  std::filesystem::path file_;
  Descriptor descriptor_{-1};  // -1: there is no file yet
  std::size_t length_ = 0;     // of what this process knows
  std::size_t line_count_ = 0;
  std::vector<nlohmann::json> lines_;
};

}  // namespace lockstep
