#include "slurm/roles/child_process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <utility>

#include "base/error.hpp"
#include "base/io/file.hpp"

namespace lockstep {
namespace {

constexpr std::size_t longest_line = 16384;

std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// This process's environment with `variables`, each as NAME=VALUE.
std::vector<std::string> environment_with(const std::map<std::string, std::string>& variables) {
  std::vector<std::string> texts;
  // careful-environment: passed on, not read
  for (char** entry = ::environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (!variables.contains(text.substr(0, text.find('=')))) texts.push_back(text);
  }
  for (const auto& [name, value] : variables) texts.push_back(fmt::format("{}={}", name, value));
  return texts;
}

// Called between fork() and exec(), so it does not allocate before exec() has failed.
[[noreturn]] void become(char* const* words, char* const* environment) {
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  ::setpgid(0, 0);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGXFSZ, SIG_DFL);
  ::execvpe(words[0], words, environment);
  const std::string sentence = fmt::format("cannot start '{}': {}.\n", words[0], system_error_message(errno));
  [[maybe_unused]] const ssize_t said = ::write(STDERR_FILENO, sentence.data(), sentence.size());
  ::_exit(127);
}

}  // namespace

ChildProcess::Pipe ChildProcess::make_pipe() {
  std::array<int, 2> ends{};
  const bool is_made = ::pipe2(ends.data(), O_CLOEXEC) == 0;
  require(is_made, Failure::other, "cannot create a pipe: {}. Start fewer programs at once, or raise 'ulimit -n'.",
          system_error_message(errno));
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

// No process writes to the pipe that is its input, so the child reads the end of its input at once.
ChildProcess::ChildProcess(const std::vector<std::string>& words, const std::map<std::string, std::string>& variables)
    : ChildProcess(words, variables, make_pipe(), make_pipe().end, -1) {}

ChildProcess::ChildProcess(const std::vector<std::string>& words, const std::map<std::string, std::string>& variables,
                           const Descriptor& input, const Descriptor& errors)
    : ChildProcess(words, variables, make_pipe(), input, static_cast<int>(errors)) {}

// `errors`: -1 for those that go where the output goes.
ChildProcess::ChildProcess(const std::vector<std::string>& words, const std::map<std::string, std::string>& variables,
                           Pipe output, int input, int errors)
    : output_(std::move(output.end)) {
  const std::vector<std::string> environment = environment_with(variables);
  const std::vector<char*> word_pointers = pointers_to(words);
  const std::vector<char*> environment_pointers = pointers_to(environment);
  process_ = ::fork();
  require(process_ >= 0, Failure::other, "cannot start '{}': {}. Start fewer instances.", words.at(0),
          system_error_message(errno));
  if (process_ == 0) {
    ::dup2(input, STDIN_FILENO);
    ::dup2(output.start, STDOUT_FILENO);
    ::dup2(errors < 0 ? static_cast<int>(output.start) : errors, STDERR_FILENO);
    become(word_pointers.data(), environment_pointers.data());
  }
  ::fcntl(output_, F_SETFL, ::fcntl(output_, F_GETFL) | O_NONBLOCK);
}

void ChildProcess::signal(int number) const {
  if (!code_) ::kill(process_, number);
}

void ChildProcess::kill_group() const {
  if (!code_) ::kill(-process_, SIGKILL);
}

std::vector<std::string> ChildProcess::lines() {
  constexpr int pieces_a_call = 4;
  std::vector<std::string> lines;
  std::array<char, 16384> room{};
  for (int piece = 0; piece < pieces_a_call && output_ >= 0; ++piece) {
    const ssize_t got = ::read(output_, room.data(), room.size());
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) break;
    if (got <= 0) output_.close();
    for (ssize_t at = 0; at < got; ++at) {
      const bool ends = room.at(static_cast<std::size_t>(at)) == '\n';
      if (!ends) rest_ += room.at(static_cast<std::size_t>(at));
      if (ends || rest_.size() == longest_line) lines.push_back(std::exchange(rest_, {}));
    }
  }
  if (output_ < 0 && !rest_.empty()) lines.push_back(std::exchange(rest_, {}));
  return lines;
}

// Its number stays its own until waitpid().
bool ChildProcess::has_ended() const {
  siginfo_t end{};
  return ::waitid(P_PID, static_cast<id_t>(process_), &end, WEXITED | WNOHANG | WNOWAIT) == 0 && end.si_pid == process_;
}

// Workers that a program leaves behind keep its output open, and hold GPUs and files.
void ChildProcess::end_survivors() {
  constexpr double seconds_to_end = 2;
  if (code_ || output_ < 0 || !has_ended()) return;
  if (!since_end_) since_end_.emplace();
  if (since_end_->seconds() < seconds_to_end) return;
  ::kill(-process_, SIGKILL);
  output_.close();
}

std::optional<int> ChildProcess::exit_code() {
  end_survivors();
  int status = 0;
  if (!code_ && output_ < 0 && ::waitpid(process_, &status, WNOHANG) == process_) {
    code_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }
  return code_;
}

}  // namespace lockstep
