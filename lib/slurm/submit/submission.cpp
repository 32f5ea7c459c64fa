#include "slurm/submit/submission.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <random>
#include <utility>

#include "base/error.hpp"
#include "base/io/descriptor.hpp"
#include "base/io/file.hpp"
#include "base/system_failure.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

bool write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

// The program's standard input, held in memory only.
Descriptor input_file(std::string_view text) {
  Descriptor file(::memfd_create("input", MFD_CLOEXEC));
  const bool is_ready = file >= 0 && write_all(file, text) && ::lseek(file, 0, SEEK_SET) == 0;
  if (!is_ready) throw system_failure("cannot hold the script in memory", errno, Access::shared_memory);
  return file;
}

struct Pipe {
  Descriptor end;  // read end
  Descriptor start;
};
Pipe make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw system_failure("cannot start a program", errno, Access::reading);
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

// If the program cannot be started, writes its errno to `told`.
[[noreturn]] void become(const std::vector<char*>& arguments, int input, int output, int told) {
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  const bool is_ready = ::dup2(input, STDIN_FILENO) >= 0 && ::dup2(output, STDOUT_FILENO) >= 0;
  if (is_ready) ::execvp(arguments.front(), arguments.data());
  const int reason = errno;
  static_cast<void>(::write(told, &reason, sizeof reason) + 0);
  ::_exit(127);
}

// Reads lines until the program has ended. Its descendants may keep the output open longer.
int wait_for_end(pid_t process, int output, const TakeLine& take_line) {
  std::string rest;
  int status = 0;
  for (bool has_ended = false, is_open = true; !has_ended || is_open;) {
    if (!has_ended) has_ended = ::waitpid(process, &status, is_open ? WNOHANG : 0) == process;
    constexpr int look_again_ms = 50;
    pollfd wait{output, POLLIN, 0};
    if (!is_open || ::poll(&wait, 1, has_ended ? 0 : look_again_ms) <= 0) {
      is_open = is_open && !has_ended;
      continue;
    }
    std::array<char, 4096> room{};
    const ssize_t got = ::read(output, room.data(), room.size());
    is_open = got > 0 || (got < 0 && errno == EINTR);
    for (ssize_t at = 0; at < got; ++at) {
      if (room.at(static_cast<std::size_t>(at)) == '\n') {
        take_line(std::exchange(rest, {}));
      } else {
        rest += room.at(static_cast<std::size_t>(at));
      }
    }
  }
  if (!rest.empty()) take_line(rest);
  return status;
}

}  // namespace

int run_with_input(const std::vector<std::string>& words, std::string_view input, const TakeLine& take_line) {
  const Descriptor file = input_file(input);
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  Pipe failure = make_pipe();  // closed when the program starts; otherwise contains the errno
  Pipe output = make_pipe();
  const pid_t process = ::fork();
  if (process < 0) throw system_failure("cannot start a program", errno, Access::reading);
  if (process == 0) become(arguments, file, take_line ? int(output.start) : STDOUT_FILENO, failure.start);
  failure.start.close();
  output.start.close();
  int reason = 0;
  const bool has_failed = ::read(failure.end, &reason, sizeof reason) == sizeof reason;
  const int status = wait_for_end(process, output.end, take_line);
  require(!has_failed, Failure::usage, "cannot start '{}': {}. Check that it is installed and in PATH.", words.front(),
          system_error_message(reason));
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

fs::path job_scripts_folder() {
  std::error_code error;
  const fs::path programs = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (const char* const place : {"../slurm", "../share/lockstep/slurm"}) {
    const fs::path folder = (programs / place).lexically_normal();
    if (!is_absent(folder / "job.sh")) return folder;
  }
  throw Error(Failure::usage,
              fmt::format("cannot find the job scripts of '{}': neither '../slurm/job.sh' (build) nor "
                          "'../share/lockstep/slurm/job.sh' (installation) exists. Install Lockstep again.",
                          programs.string()));
}

SecretsFile::SecretsFile(const fs::path& place, const std::string& job, std::string_view text) {
  std::random_device random;
  const std::string number = fmt::format("{:08x}{:08x}", random(), random());
  tag_ = "submit_job:" + number;
  path_ = fs::absolute(place) / fmt::format(".{}.{}.secrets", job.substr(0, 64), number);
  Descriptor file(create_new_file(path_.c_str(), secret_mode));
  if (file >= 0 && write_all(file, text) && ::fsync(file) == 0 && file.close()) return;
  const int reason = errno;
  if (file >= 0) ::unlink(path_.c_str());
  throw system_failure(fmt::format("cannot write '{}'", path_.string()), reason, Access::writing, "the job's secrets");
}

SecretsFile::~SecretsFile() {
  if (!is_kept_) ::unlink(path_.c_str());
}

}  // namespace lockstep
