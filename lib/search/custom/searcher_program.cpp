#include "search/custom/searcher_program.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <utility>

#include "base/error.hpp"
#include "base/system_failure.hpp"
#include "base/text/json_text.hpp"
#include "base/text/number.hpp"
#include "base/text/printable.hpp"

namespace lockstep {
namespace {

constexpr double seconds_to_end = 5;

Descriptor open_log(const std::filesystem::path& file) {
  constexpr int flags = O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;  // waits for no reader
  // careful-open: in a folder that this process has locked; waits for no pipe and follows no link
  Descriptor log(::open(file.c_str(), flags, 0666));
  if (log >= 0) return log;
  throw system_failure(fmt::format("cannot write '{}'", file.string()), errno, Access::writing,
                       "the errors of the searcher's program");
}

}  // namespace

SearcherProgram::SearcherProgram(std::vector<std::string> command, double answer_seconds, std::filesystem::path log)
    : command_(std::move(command)), answer_seconds_(answer_seconds), log_(std::move(log)) {
  std::array<int, 2> ends{-1, -1};
  require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0, Failure::other,
          "cannot start {}: the system has no more sockets. Start fewer programs.", name());
  input_ = Descriptor(ends[0]);
  const Descriptor of_child(ends[1]);
  process_ = std::make_unique<ChildProcess>(command_, std::map<std::string, std::string>(), of_child, open_log(log_));
}

SearcherProgram::~SearcherProgram() { process_->signal(SIGKILL); }

std::string SearcherProgram::name() const {
  return fmt::format("'{}'", printable(fmt::format("{}", fmt::join(command_, " "))));
}

void SearcherProgram::send(const nlohmann::json& line) {
  unsent_ += json_text(line) + "\n";
  flush();
}

void SearcherProgram::ask(const nlohmann::json& question) {
  asked_ = Stopwatch();
  send(question);
}

// A program that does not read fills the socket: the rest is sent later.
void SearcherProgram::flush() {
  while (!unsent_.empty()) {
    const ssize_t sent = ::send(input_, unsent_.data(), unsent_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent <= 0) return;  // a program that has ended is found by answer()
    unsent_.erase(0, static_cast<std::size_t>(sent));
  }
}

std::optional<nlohmann::json> SearcherProgram::answer() {
  flush();
  const std::vector<std::string> lines = process_->lines();
  if (!lines.empty()) {
    nlohmann::json answer = try_parse_json(lines.front());
    require(lines.size() == 1 && !answer.is_discarded(), Failure::usage,
            "{} answered '{}', which is not one line of JSON. Correct it: the same command continues the search.",
            name(), printable(lines.front().substr(0, 100)));
    return answer;
  }
  if (const std::optional<int> code = process_->exit_code()) {
    throw Error(Failure::other,
                fmt::format("{} ended with code {} without an answer. See '{}', and correct it: the same "
                            "command continues the search.",
                            name(), *code, printable(log_.string())));
  }
  require(
      asked_.seconds() < answer_seconds_, Failure::other,
      "{} has not answered within {} seconds ('answer_seconds'). Correct it: the same command continues the search.",
      name(), number_text(answer_seconds_));
  return std::nullopt;
}

void SearcherProgram::finish() {
  send({{"ask", "done"}});
  ::shutdown(input_, SHUT_WR);
  for (const Stopwatch watch; !process_->exit_code() && watch.seconds() < seconds_to_end;) {
    pollfd wait{process_->handle(), POLLIN, 0};
    ::poll(&wait, 1, 50);
    process_->lines();
  }
}

}  // namespace lockstep
