#include "search/journal/journal.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/error.hpp"
#include "base/io/append.hpp"
#include "base/io/file.hpp"
#include "base/io/partial_file.hpp"
#include "base/log.hpp"
#include "base/system_failure.hpp"
#include "base/text/json_text.hpp"
#include "base/text/printable.hpp"
#include "run/run_file.hpp"

namespace lockstep {
namespace {

constexpr std::size_t most_journal_bytes = std::size_t{1} << 30;

Error unwritable(const std::filesystem::path& file, int error_number) {
  return system_failure(fmt::format("cannot write '{}'", file.string()), error_number, Access::writing,
                        "the search could not be continued");
}

// So a process that has lost the journal's lock without knowing it overwrites nothing.
void append_only(int descriptor, const std::filesystem::path& file) {
  if (::fcntl(descriptor, F_SETFL, O_APPEND) != 0) throw unwritable(file, errno);
}

Descriptor create_journal(const std::filesystem::path& file) {
  Descriptor created(create_new_file(file.c_str()));
  // careful-open: the folder, which this process has locked
  const Descriptor folder(::open(file.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (created < 0 || folder < 0 || ::fsync(folder) != 0) throw unwritable(file, errno);
  append_only(created, file);
  return created;
}

Descriptor open_journal(const std::filesystem::path& file) {
  const RegularFile checked(file, Links::refused);  // no pipe, no device
  // careful-open: a regular file, as just checked, in a folder that this process has locked
  Descriptor opened(::open(file.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC));
  if (opened < 0) throw unwritable(file, errno);
  append_only(opened, file);
  return opened;
}

}  // namespace

bool is_next_line(const std::filesystem::path& journal, const nlohmann::json& line, std::int64_t count) {
  if (!line.contains("line")) return true;
  const std::optional<std::int64_t> number = count_in(line, "line");
  require(number && *number <= count + 1, Failure::bad_data,
          "'{}' is damaged after {} lines: lines are missing, or the next one's number is wrong. Restore the file from "
          "a copy, or start the search in another folder.",
          printable(journal.string()), count);
  return *number == count + 1;
}

Journal::Journal(std::filesystem::path file) : file_(std::move(file)) {
  if (is_absent(file_)) return;
  descriptor_ = open_journal(file_);
  lines_ = read_new();
}

bool Journal::has_changed() const {
  struct stat now {};
  return ::stat(file_.c_str(), &now) == 0 && static_cast<std::size_t>(now.st_size) != length_;
}

std::vector<nlohmann::json> Journal::read_new() {
  const std::string text = read_file(file_, most_journal_bytes);
  require(text.size() >= length_, Failure::bad_data,
          "'{}' has become shorter. Restore the file from a copy, or start the search in another folder.",
          file_.string());
  std::vector<nlohmann::json> lines;
  while (length_ < text.size()) {
    const std::size_t end = text.find('\n', length_);
    nlohmann::json line = end == std::string::npos
                              ? nlohmann::json()
                              : try_parse_json(std::string_view(text).substr(length_, end - length_));
    if (!line.is_object()) {
      const bool is_last = end == std::string::npos || end + 1 == text.size();
      require(is_last, Failure::bad_data,
              "'{}', line {} is damaged. Restore the file from a copy, or start the search in another folder.",
              file_.string(), line_count_ + 1);
      log::warning("'{}', line {} is damaged: the search was killed while it wrote the line. The line is dropped.",
                   file_.string(), line_count_ + 1);
      if (::ftruncate(descriptor_, static_cast<off_t>(length_)) != 0) throw unwritable(file_, errno);
      break;
    }
    lines.push_back(std::move(line));
    ++line_count_;
    length_ = end + 1;
  }
  return lines;
}

void Journal::append(const nlohmann::json& line) {
  if (descriptor_ < 0) descriptor_ = create_journal(file_);
  const std::string text = json_text(line) + "\n";
  require_own_end();
  if (!append_whole(descriptor_, text) || ::fsync(descriptor_) != 0) throw unwritable(file_, errno);
  length_ += text.size();
  ++line_count_;
  require_own_end();
}

void Journal::require_own_end() const {
  struct stat now {};
  if (::fstat(descriptor_, &now) != 0) throw unwritable(file_, errno);
  require(static_cast<std::size_t>(now.st_size) == length_, Failure::out_of_step,
          "another process wrote to '{}' at the same time. The same command continues the search.", file_.string());
}

}  // namespace lockstep
