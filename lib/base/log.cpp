#include "base/log.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <utility>

#include "base/io/nonblocking_output.hpp"
#include "base/log_scope.hpp"
#include "base/output_closed.hpp"
#include "base/system_failure.hpp"
#include "base/text/printable.hpp"

namespace lockstep::log {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto redraw_interval = std::chrono::milliseconds(100);
constexpr std::string_view clear_line = "\r\x1b[K";

std::string this_host() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  return name.data();
}

// One state for the process, because it has one standard output.
struct State {
  std::mutex mutex;
  int rank = 0;
  std::string host = this_host();
  std::optional<int> training_rank;  // the rank within a training
  std::string label;
  std::string live;    // the newest progress text
  bool drawn = false;  // a progress line is on the terminal
  bool ended = false;  // an error was printed
  Clock::time_point drawn_at;
  NonblockingOutput out{STDOUT_FILENO};
  NonblockingOutput err{STDERR_FILENO};

  bool prints() const { return training_rank.value_or(rank) == 0; }
};

State& state() {
  // Never destroyed: threads may print during static destruction.
  static State& only = []() -> State& {
    std::atexit(flush);
    return *new State;
  }();
  return only;
}

void let_out_both(State& now) {
  constexpr WriteTimeout last{std::chrono::seconds(1), std::chrono::seconds(10)};
  now.out.drain(last);
  now.err.drain(last);
}

std::string prefix_of(const State& now) {
  return fmt::format("[rank {}, {}{}{}]", now.rank, now.host, now.label.empty() ? "" : ", ", now.label);
}

enum class PrintedBy { rank_0, any_rank };

// Prints `text` as it is. The caller has made it safe for a terminal.
void print(NonblockingOutput State::*outlet, const std::string& text, PrintedBy by) {
  State& now = state();
  const std::lock_guard lock(now.mutex);
  if (now.ended || (by == PrintedBy::rank_0 && !now.prints())) return;
  if (std::exchange(now.drawn, false)) now.out.write(clear_line);
  (now.*outlet).write(text + '\n');
}

void print_line(NonblockingOutput State::*outlet, std::string_view text, PrintedBy by) {
  print(outlet, fmt::format("{}  {}", prefix(), printable(text)), by);
}

// The user's terminal, or -1. mpirun gives each rank its own terminal, even if mpirun's output is a file. In that case
// the output of the parent process decides.
int find_terminal() {
  if (::isatty(STDOUT_FILENO) != 1) return -1;
  // careful-open: the terminal of mpirun, below /proc
  const int parent = ::open(fmt::format("/proc/{}/fd/1", ::getppid()).c_str(), O_WRONLY | O_NOCTTY | O_CLOEXEC);
  if (parent < 0) return STDOUT_FILENO;
  if (::isatty(parent) == 1) return parent;
  ::close(parent);
  return -1;
}

int terminal() {
  static const int found = find_terminal();
  return found;
}

// Width of a progress line: one column less than the window, because a full line would wrap on some terminals.
std::size_t columns() {
  winsize size{};
  if (::ioctl(terminal(), TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 79;
  return size.ws_col - std::size_t{1};
}

// The first `columns` characters of UTF-8 text.
std::string_view cut(std::string_view text, std::size_t columns) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    const bool starts_character = (static_cast<unsigned char>(text[at]) & 0xC0U) != 0x80U;
    if (starts_character && columns-- == 0) return text.substr(0, at);
  }
  return text;
}

void draw(State& now) {
  if (now.out.has_pending() && now.out.drain(no_patience) == EAGAIN) return;
  now.out.write(fmt::format("{}{}", clear_line, cut(now.live, columns())));
  now.drawn = true;
  now.drawn_at = Clock::now();
}

}  // namespace

void fill_closed_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    // careful-open: fills a closed standard stream
    if (::fcntl(stream, F_GETFD) < 0) ::open("/dev/null", O_RDONLY);  // open() returns the lowest free descriptor
  }
}

void set_identity(int rank, std::string host) {
  State& now = state();
  const std::lock_guard lock(now.mutex);
  now.rank = rank;
  host = printable(host);
  now.host = std::move(host);
}

std::string prefix() {
  State& now = state();
  const std::lock_guard lock(now.mutex);
  return prefix_of(now);
}

std::string host() {
  State& now = state();
  const std::lock_guard lock(now.mutex);
  return now.host;
}

LogScope::LogScope(int rank, const std::string& label) {
  State& now = state();
  const std::lock_guard lock(now.mutex);
  now.training_rank = rank;
  now.label = printable(label);
}

LogScope::~LogScope() {
  State& now = state();
  const std::lock_guard lock(now.mutex);
  now.training_rank.reset();
  now.label.clear();
}

int job_rank() {
  State& now = state();
  const std::lock_guard lock(now.mutex);
  return now.rank;
}

void info(std::string_view text) { print_line(&State::out, text, PrintedBy::rank_0); }
void info_to_terminal(std::string_view text) {
  const int people = terminal();
  if (people < 0 || people == STDOUT_FILENO) return info(text);
  const std::string line = fmt::format("{}{}  {}\n", clear_line, prefix(), printable(text));
  State& now = state();
  const std::lock_guard lock(now.mutex);
  if (now.ended || !now.prints()) return;
  pollfd ready{people, POLLOUT, 0};
  if (::poll(&ready, 1, 0) <= 0) return;  // not writable now, as after Ctrl-S
  [[maybe_unused]] const ssize_t written = ::write(people, line.data(), line.size());
}
void warning(std::string_view text) { print_line(&State::err, text, PrintedBy::any_rank); }
void forwarded(std::string_view text) { print(&State::out, printable_lines(text), PrintedBy::rank_0); }

void plain(std::string_view text) {
  State& now = state();
  const std::lock_guard lock(now.mutex);
  if (now.ended || !now.prints()) return;
  now.out.drain(endless_patience);
  if (std::exchange(now.drawn, false)) now.out.write(clear_line);
  int error_number = now.out.write(printable_lines(text) + '\n');
  if (error_number == EAGAIN) error_number = now.out.drain(endless_patience);
  if (error_number == 0) return;
  if (error_number == EPIPE) throw OutputClosed();
  throw system_failure("cannot write to standard output", error_number, Access::writing, "the output is lost");
}

void error(std::string_view text) {
  print_line(&State::err, text, PrintedBy::any_rank);
  State& now = state();
  const std::lock_guard lock(now.mutex);
  let_out_both(now);
  now.ended = true;
}

void flush() {
  State& now = state();
  const std::lock_guard lock(now.mutex);
  let_out_both(now);
}

bool is_terminal() {
  State& now = state();
  const std::lock_guard lock(now.mutex);
  return now.label.empty() && terminal() >= 0;
}

std::size_t progress_columns() { return columns(); }

void progress(std::string_view text) {
  if (!is_terminal()) return;
  State& now = state();
  const std::lock_guard lock(now.mutex);
  if (now.ended || !now.prints()) return;
  now.live = printable(text);
  if (!now.drawn || Clock::now() - now.drawn_at >= redraw_interval) draw(now);
}

void end_progress() {
  if (!is_terminal()) return;
  State& now = state();
  const std::lock_guard lock(now.mutex);
  if (now.ended || now.live.empty()) return;
  draw(now);
  now.out.write("\n");
  now.live.clear();
  now.drawn = false;
}

}  // namespace lockstep::log
