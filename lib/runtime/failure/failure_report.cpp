#include "runtime/failure/failure_report.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <climits>
#include <ctime>
#include <span>
#include <system_error>
#include <utility>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/log.hpp"
#include "base/text/json_text.hpp"
#include "job/job_environment.hpp"
#include "run/exit_report.hpp"
#include "run/run_file.hpp"
#include "run/run_state.hpp"

namespace lockstep::failure_report {
namespace {

using Path = std::array<char, PATH_MAX>;

// A report's file. Its names are formatted in advance.
struct Target {
  Path folder{};
  Path file{};
  Path partial{};
  std::atomic<bool> is_set = false;
};

// Everything that a signal handler needs.
struct State {
  std::array<char, 256> host{};
  Target exit_report;
  Target folder;
  FolderLease lease;  // of the folder
  Path lock_file{};
  Path summary_file{};
  std::atomic<bool> owns_summary = false;
  std::array<char, 101> token{};
  int rank = 0;
  std::atomic<bool> left_to_others = false;
  std::atomic<std::int64_t> step = -1;
  std::atomic<std::atomic<int>*> report_state = nullptr;
  std::atomic<std::atomic<int>*> code = nullptr;
};
State state;

template <std::size_t size>
void copy_into(std::array<char, size>& target, const std::string& text) {
  require(text.size() < size, Failure::usage, "the path '{}' is too long. Choose a shorter one.", text);
  target.fill('\0');
  std::copy(text.begin(), text.end(), target.begin());
}

std::filesystem::path absolute_path(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::absolute(path, ignored).lexically_normal();
}

void set(Target& target, const std::filesystem::path& file) {
  target.is_set = false;
  if (file.empty()) return;
  copy_into(target.folder, file.has_parent_path() ? file.parent_path().string() : ".");
  copy_into(target.file, file.string());
  copy_into(target.partial, partial_path(file).string());
  target.is_set = true;
}

// Appends to a fixed buffer and drops what does not fit. Does not allocate, because a signal handler may use it.
class Text {
 public:
  void add(std::string_view text) {
    for (const char c : text) add(c);
  }
  void add(std::int64_t value) {
    std::array<char, 24> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
    add(std::string_view(digits.data(), static_cast<std::size_t>(end - digits.data())));
  }
  // Appends a JSON string. The text may be truncated; the closing quote is always written.
  void add_quoted(std::string_view text) {
    constexpr std::size_t longest = 4000;
    const std::span<char> room = std::span(buffer_).subspan(length_);
    length_ += write_json_string(text, room.first(std::min(room.size(), longest)));
  }
  std::size_t room() const { return buffer_.size() - length_; }
  std::string_view view() const { return {buffer_.data(), length_}; }

 private:
  void add(char c) {
    if (length_ < buffer_.size()) buffer_[length_++] = c;
  }
  std::array<char, 8192> buffer_;
  std::size_t length_ = 0;
};

// Adds as many hosts as leave room for the fields that follow.
void add_bad_hosts(const Reason& reason, Text& text) {
  constexpr std::size_t kept_room = 4500;
  if (reason.bad_hosts.empty()) return;
  text.add(", \"bad_hosts\": ");
  std::string_view before = "[";
  for (const std::string& host : reason.bad_hosts) {
    if (text.room() < kept_room + host.size()) break;
    text.add(before);
    text.add_quoted(host);
    before = ", ";
  }
  text.add("]");
}

constexpr std::size_t longest_error_line = 500;

Text report_of(int rank, std::string_view host, const Reason& reason) {
  Text text;
  text.add("{\"code\": ");
  text.add(std::int64_t{reason.code});
  text.add(", \"signal\": ");
  if (reason.signal == 0) {
    text.add("null");
  } else {
    text.add(std::int64_t{reason.signal});
  }
  text.add(", \"rank\": ");
  text.add(std::int64_t{rank});
  text.add(", \"host\": ");
  text.add_quoted(host);
  if (!reason.error_line.empty()) {
    text.add(", \"error_line\": ");
    text.add_quoted(reason.error_line.substr(0, longest_error_line));
  }
  add_bad_hosts(reason, text);
  text.add(", \"step\": ");
  text.add(state.step.load());
  text.add(", \"sentence\": ");
  text.add_quoted(reason.sentence);
  text.add(", \"time\": ");
  text.add(static_cast<std::int64_t>(::time(nullptr)));
  text.add("}\n");
  return text;
}

bool write_whole(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

// Waits until the first report is written. Ending the process now could end the thread that writes it.
void wait_for(const std::atomic<int>& report_state) {
  constexpr timespec look{0, 10'000'000};
  constexpr int looks = 100;  // one second; the writer may have been killed
  for (int i = 0; i < looks && report_state != Shared::reported; ++i) ::nanosleep(&look, nullptr);
}

enum class Outcome { written, another_stands, impossible };

// Whether this job still owns the folder. A removed folder belongs to nobody.
bool is_held() {
  const std::string_view token(state.token.data());
  if (token.empty()) return true;
  struct stat status {};
  if (::stat(state.folder.folder.data(), &status) != 0) return errno == ENOENT;
  // careful-open: in a signal handler; a pipe is not waited for, a link not followed
  const int file = ::open(state.lock_file.data(), O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
  if (file < 0) return false;
  std::array<char, 4096> text{};
  const ssize_t length = ::read(file, text.data(), text.size());
  ::close(file);
  return length > 0 && std::string_view(text.data(), static_cast<std::size_t>(length)).find(token) != std::string::npos;
}

// Publishes with a hard link: link() fails if the name exists, and the file is complete before it gets the name.
Outcome publish(const Target& target, std::string_view text) {
  if (!target.is_set) return Outcome::impossible;
  if (&target == &state.folder) {
    if (!is_held()) return Outcome::impossible;
    ::mkdir(target.folder.data(), 0777);
  }
  const int file = create_new_file(target.partial.data());
  if (file < 0) return Outcome::impossible;
  const bool whole = write_whole(file, text) && ::fsync(file) == 0;
  ::close(file);
  Outcome outcome = Outcome::impossible;
  if (whole && ::link(target.partial.data(), target.file.data()) == 0) outcome = Outcome::written;
  if (whole && outcome != Outcome::written && errno == EEXIST) outcome = Outcome::another_stands;
  ::unlink(target.partial.data());
  if (&target == &state.folder && state.owns_summary) mark_failed(state.summary_file.data());
  return outcome;
}

}  // namespace

void set_rank(int rank, const std::string& host) {
  state.rank = rank;
  copy_into(state.host, host.substr(0, state.host.size() - 1));
}

void set_exit_report_file(const std::filesystem::path& file) { set(state.exit_report, file); }

void begin_attempt() {
  if (!state.exit_report.is_set) return;
  const std::string file = state.exit_report.file.data();
  if (::access(state.exit_report.folder.data(), W_OK | X_OK) != 0) {
    log::warning(
        "cannot write '{}': {}. Job scripts read this exit report ({}) to see why an attempt ended. Choose a folder "
        "that you may write to.",
        file, system_error_message(errno), exit_report_variable);
  }
  struct stat status {};
  if (::lstat(file.c_str(), &status) != 0) return;
  if (S_ISREG(status.st_mode) && read_exit_report(file)) {
    ::unlink(file.c_str());
    return;
  }
  set_exit_report_file({});
  throw Error(
      Failure::usage,
      fmt::format(
          "'{}' is not the exit report of an earlier attempt. It would be overwritten. Choose another file in {}.",
          file, exit_report_variable));
}

void set_folder(const std::filesystem::path& folder, FolderLease lease) {
  const std::filesystem::path file = folder.empty() ? folder : folder / run_files::failure;
  const bool is_exit_report =
      state.exit_report.is_set && absolute_path(file) == absolute_path(state.exit_report.file.data());
  set(state.folder, is_exit_report ? "" : file);
  copy_into(state.lock_file, (folder / run_files::lock).string());
  copy_into(state.summary_file, (folder / run_files::summary).string());
  state.owns_summary = false;
  copy_into(state.token, lease.token);
  state.lease = std::move(lease);
}

void own_summary() noexcept { state.owns_summary = true; }

void clear() {
  if (state.folder.is_set) ::unlink(state.folder.file.data());
}

void leave_to_others() noexcept { state.left_to_others = true; }

void set_step(std::int64_t step) noexcept { state.step.store(step, std::memory_order_relaxed); }

bool write(const Reason& reason) noexcept {
  const bool speaks = write_of(state.rank, state.host.data(), reason);
  if (std::atomic<int>* const code = state.code) code->store(reason.code);
  return speaks;
}

bool write_of(int rank, std::string_view host, const Reason& reason) noexcept {
  if (state.left_to_others) return false;
  const int saved_errno = errno;
  std::atomic<int>* const report_state = state.report_state;
  int nobody = Shared::unreported;
  if (report_state != nullptr && !report_state->compare_exchange_strong(nobody, Shared::reporting)) {
    wait_for(*report_state);
    errno = saved_errno;
    return false;
  }
  const Text report = report_of(rank, host, reason);
  const Outcome of_attempt = publish(state.exit_report, report.view());
  const Outcome of_folder = publish(state.folder, report.view());
  if (report_state != nullptr) *report_state = Shared::reported;
  errno = saved_errno;
  return of_attempt != Outcome::another_stands && of_folder != Outcome::another_stands;
}

void write_in_folder(const Reason& reason) noexcept {
  publish(state.folder, report_of(state.rank, state.host.data(), reason).view());
}

std::optional<int> reported_code() {
  for (const Target* target : {&state.exit_report, &state.folder}) {
    if (!target->is_set) continue;
    if (const std::optional<ExitReport> report = read_exit_report(target->file.data())) return report->code;
  }
  return std::nullopt;
}

void share(const Shared& shared) {
  state.report_state = shared.report_state;
  state.code = shared.code;
}

}  // namespace lockstep::failure_report
