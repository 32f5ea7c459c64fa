#include "search/journal.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "base/error.hpp"
#include "base/io/append.hpp"
#include "base/io/file.hpp"
#include "base/io/partial_file.hpp"
#include "base/log.hpp"
#include "base/system_failure.hpp"
#include "base/text/json_text.hpp"

namespace lockstep {
namespace {

constexpr std::size_t most_bytes = std::size_t{1} << 30;

Error unwritable(const std::filesystem::path& file, int error_number) {
  return system_failure(fmt::format("cannot write '{}'", file.string()), error_number, Access::writing,
                        "the search could not be continued");
}

Descriptor create_journal(const std::filesystem::path& file) {
  Descriptor created(create_new_file(file.c_str()));
  // careful-open: the folder, which this process has locked
  const Descriptor folder(::open(file.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (created < 0 || folder < 0 || ::fsync(folder) != 0) throw unwritable(file, errno);
  return created;
}

Descriptor open_journal(const std::filesystem::path& file) {
  const RegularFile checked(file, Links::refused);  // no pipe, no device
  // careful-open: a regular file, as just checked, in a folder that this process has locked
  Descriptor opened(::open(file.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC));
  if (opened < 0) throw unwritable(file, errno);
  return opened;
}

}  // namespace

Journal::Journal(std::filesystem::path file) : file_(std::move(file)) {
  if (is_absent(file_)) return;
  descriptor_ = open_journal(file_);
  read();
}

void Journal::read() {
  const std::string text = read_file(file_, most_bytes);
  std::size_t place = 0;
  while (place < text.size()) {
    const std::size_t end = text.find('\n', place);
    nlohmann::json line =
        end == std::string::npos ? nlohmann::json() : try_parse_json(std::string_view(text).substr(place, end - place));
    if (!line.is_object()) {
      const bool is_last = end == std::string::npos || end + 1 == text.size();
      require(is_last, Failure::bad_data,
              "'{}', line {} is damaged. Restore the file from a copy, or start the search in another folder.",
              file_.string(), lines_.size() + 1);
      log::warning("'{}', line {} is damaged: the search was killed while it wrote the line. The line is dropped.",
                   file_.string(), lines_.size() + 1);
      break;
    }
    lines_.push_back(std::move(line));
    place = end + 1;
  }
  const auto length = static_cast<off_t>(place);
  if (::ftruncate(descriptor_, length) != 0 || ::lseek(descriptor_, length, SEEK_SET) != length) {
    throw unwritable(file_, errno);
  }
}

void Journal::append(const nlohmann::json& line) {
  if (descriptor_ < 0) descriptor_ = create_journal(file_);
  if (!append_whole(descriptor_, json_text(line) + "\n") || ::fsync(descriptor_) != 0) throw unwritable(file_, errno);
}

}  // namespace lockstep
