#include "search/hparams/trial_events.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include "base/error.hpp"
#include "base/io/append.hpp"
#include "base/io/file.hpp"
#include "base/io/partial_file.hpp"
#include "base/log.hpp"
#include "base/system_failure.hpp"
#include "base/text/printable.hpp"
#include "run/run_file.hpp"
#include "train/tensorboard/event.hpp"
#include "train/tensorboard/protobuf.hpp"

namespace lockstep {
namespace {

constexpr std::size_t most_event_bytes = std::size_t{1} << 26;
constexpr std::uint32_t wall_time = 1;  // field of an event
constexpr std::size_t time_bytes = 9;   // with its key
constexpr std::size_t head_bytes = 12;  // length of a record and its CRC
constexpr std::size_t tail_bytes = 4;   // CRC of the event

std::string timed(const std::string& record) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return double_field(wall_time, std::chrono::duration<double>(now).count()) + record;
}

// The bytes of `text` that hold complete records which equal `records` except for their times, and how many they are.
struct Written {
  std::size_t bytes = 0;
  std::size_t records = 0;
};
Written written_in(const std::string& text, const std::vector<std::string>& records) {
  Written written;
  for (const std::string& record : records) {
    const std::size_t bytes = head_bytes + time_bytes + record.size() + tail_bytes;
    if (text.size() - written.bytes < bytes) break;
    const std::string_view data = std::string_view(text).substr(written.bytes + head_bytes, time_bytes + record.size());
    if (text.compare(written.bytes, bytes, tf_record(data)) != 0 || data.substr(time_bytes) != record) break;
    written.bytes += bytes;
    ++written.records;
  }
  return written;
}

// Whether the bytes are the start of the record, which a killed search could not complete.
bool is_start_of(std::string_view bytes, std::string_view record) {
  const std::string_view part = bytes.substr(std::min(bytes.size(), head_bytes + time_bytes));
  return part.size() < record.size() + tail_bytes && record.starts_with(part.substr(0, record.size()));
}

// Appends the records that the file lacks. Throws as system_failure(), and Error(usage) if the file has other records.
void complete(const std::filesystem::path& file, const std::vector<std::string>& records) {
  const auto refused = [&](int error) {
    return system_failure(fmt::format("cannot write '{}'", file.string()), error, Access::writing, "--tensorboard");
  };
  std::error_code made;
  std::filesystem::create_directories(file.parent_path(), made);
  if (made) throw refused(made.value());
  const bool is_new = is_absent(file);
  const std::optional<std::string> read = is_new ? "" : read_run_file(file, most_event_bytes);
  require(read.has_value(), Failure::usage,
          "'{}' is not a regular file, cannot be read, or is too large (--tensorboard). Choose another folder.",
          printable(file.string()));
  const std::string& text = *read;
  const Written written = written_in(text, records);
  if (written.records == records.size()) return;
  require(is_start_of(std::string_view(text).substr(written.bytes), records[written.records]), Failure::usage,
          "'{}' has events of another search (--tensorboard). Choose another folder for this one.",
          printable(file.string()));
  Descriptor opened(is_new ? create_new_file(file.c_str()) : -1);
  // careful-open: a regular file, as it was just read
  if (!is_new) opened = Descriptor(::open(file.c_str(), O_WRONLY | O_NOFOLLOW | O_CLOEXEC));
  const auto end = static_cast<off_t>(written.bytes);
  if (opened < 0 || ::ftruncate(opened, end) != 0 || ::lseek(opened, end, SEEK_SET) != end) throw refused(errno);
  std::string rest;
  for (std::size_t next = written.records; next < records.size(); ++next) rest += tf_record(timed(records[next]));
  if (!append_whole(opened, rest)) throw refused(errno);
}

constexpr const char* file_name = "events.out.tfevents.search";

}  // namespace

TrialEvents::TrialEvents(const Space& space, const std::filesystem::path& output, std::filesystem::path folder)
    : space_(space), folder_(std::move(folder)) {
  complete(folder_ / file_name,
           {event_file_version(), experiment_event(space, std::filesystem::weakly_canonical(output))});
}

void TrialEvents::start(std::int64_t trial, const std::vector<OptionWord>& settings) {
  records_[trial] = {event_file_version()};
  add(trial, session_start_event(space_, settings));
}

void TrialEvents::add_result(std::int64_t trial, std::int64_t steps, double metric) {
  add(trial, metric_event(metric_name(space_.metric), steps, metric));
}

void TrialEvents::end(std::int64_t trial, SessionStatus status) { add(trial, session_end_event(status)); }

void TrialEvents::add(std::int64_t trial, std::string record) {
  records_[trial].push_back(std::move(record));
  try {
    complete(folder_of(trial) / file_name, records_[trial]);
  } catch (const Error& error) {
    if (!std::exchange(has_warned_, true)) log::warning("{} The search continues.", error.what());
  }
}

}  // namespace lockstep
