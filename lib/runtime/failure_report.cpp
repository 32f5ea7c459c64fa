#include "runtime/failure_report.hpp"

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
#include <nlohmann/json.hpp>
#include <system_error>

#include "base/error.hpp"
#include "base/file.hpp"

namespace lockstep::failure_report {
namespace {

using Path = std::array<char, PATH_MAX>;

// Everything a signal handler needs, formatted beforehand.
struct State {
  std::array<char, 256> host{};
  Path folder{};
  Path file{};
  Path partial{};
  int rank = 0;
  std::atomic<bool> has_folder = false;
  std::atomic<std::int64_t> step = -1;
  std::atomic<std::atomic<int>*> told = nullptr;
  std::atomic<std::atomic<int>*> code = nullptr;
};
State state;

template <std::size_t size>
void copy_into(std::array<char, size>& target, const std::string& text) {
  require(text.size() < size, Failure::usage, "the path '{}' is too long. Choose a shorter --output.", text);
  target.fill('\0');
  std::copy(text.begin(), text.end(), target.begin());
}

// Appends to a fixed buffer; what does not fit is left out. No allocation: a signal handler may run it.
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
  // A JSON string. Control characters become spaces. The sentence may be cut, the quotes may not.
  void add_quoted(std::string_view text) {
    constexpr std::size_t longest = 2000;
    add('"');
    for (const char c : text.substr(0, longest)) {
      if (c == '"' || c == '\\') add('\\');
      add(static_cast<unsigned char>(c) < 0x20 ? ' ' : c);
    }
    add('"');
  }
  std::string_view view() const { return {buffer_.data(), length_}; }

 private:
  void add(char c) {
    if (length_ < buffer_.size()) buffer_[length_++] = c;
  }
  std::array<char, 8192> buffer_;
  std::size_t length_ = 0;
};

Text report_of(int rank, std::string_view host, const Cause& cause) {
  Text text;
  text.add("{\"code\": ");
  text.add(std::int64_t{cause.code});
  text.add(", \"signal\": ");
  if (cause.signal == 0) {
    text.add("null");
  } else {
    text.add(std::int64_t{cause.signal});
  }
  text.add(", \"rank\": ");
  text.add(std::int64_t{rank});
  text.add(", \"host\": ");
  text.add_quoted(host);
  text.add(", \"step\": ");
  text.add(state.step.load());
  text.add(", \"sentence\": ");
  text.add_quoted(cause.sentence);
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

// Whoever ends the process now may end the thread that is telling.
void wait_for(const std::atomic<int>& told) {
  constexpr timespec look{0, 10'000'000};
  constexpr int looks = 100;  // a second: the one who tells may have been killed
  for (int i = 0; i < looks && told != Shared::is_told; ++i) ::nanosleep(&look, nullptr);
}

enum class Outcome { written, another_stands, impossible };

// A hard link is made only if the name is free, and the file is whole before it has the name.
Outcome publish(std::string_view text) {
  ::mkdir(state.folder.data(), 0777);
  const int file = ::open(state.partial.data(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0) return Outcome::impossible;
  const bool whole = write_whole(file, text) && ::fsync(file) == 0;
  ::close(file);
  Outcome outcome = Outcome::impossible;
  if (whole && ::link(state.partial.data(), state.file.data()) == 0) outcome = Outcome::written;
  if (whole && outcome != Outcome::written && errno == EEXIST) outcome = Outcome::another_stands;
  ::unlink(state.partial.data());
  return outcome;
}

}  // namespace

void set_rank(int rank, const std::string& host) {
  state.rank = rank;
  copy_into(state.host, host.substr(0, state.host.size() - 1));
}

void set_folder(const std::filesystem::path& folder) {
  state.has_folder = false;
  if (folder.empty()) return;
  copy_into(state.folder, folder.string());
  copy_into(state.file, (folder / "failure.json").string());
  copy_into(state.partial,
            (folder / fmt::format(".failure.json.{}.{}.partial", state.host.data(), ::getpid())).string());
  state.has_folder = true;
}

void clear() {
  if (state.has_folder) ::unlink(state.file.data());
}

void set_step(std::int64_t step) noexcept { state.step.store(step, std::memory_order_relaxed); }

bool write(const Cause& cause) noexcept {
  const bool speaks = write_of(state.rank, state.host.data(), cause);
  if (std::atomic<int>* const code = state.code) code->store(cause.code);
  return speaks;
}

bool write_of(int rank, std::string_view host, const Cause& cause) noexcept {
  const int saved_errno = errno;
  std::atomic<int>* const told = state.told;
  int nobody = Shared::nobody_tells;
  if (told != nullptr && !told->compare_exchange_strong(nobody, Shared::one_tells)) {
    wait_for(*told);
    errno = saved_errno;
    return false;
  }
  const Outcome outcome = state.has_folder ? publish(report_of(rank, host, cause).view()) : Outcome::impossible;
  if (told != nullptr) *told = Shared::is_told;
  errno = saved_errno;
  return outcome != Outcome::another_stands;
}

std::optional<int> standing_code() {
  if (!state.has_folder) return std::nullopt;
  try {
    constexpr std::size_t longest = 1 << 16;
    const int code = nlohmann::json::parse(read_file(state.file.data(), longest)).at("code");
    return code > 0 && code < 256 ? std::optional(code) : std::nullopt;
  } catch (const std::exception&) {
    return std::nullopt;  // none stands, or none of ours
  }
}

void share(const Shared& shared) {
  state.told = shared.told;
  state.code = shared.code;
}

}  // namespace lockstep::failure_report
