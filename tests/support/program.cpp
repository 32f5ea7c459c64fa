#include "support/program.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <system_error>
#include <thread>

extern char** environ;

namespace lockstep {
namespace {

// A file in memory: the program can never wait for somebody to read what it says.
class CapturedGraph {
 public:
  CapturedGraph() : file_(::memfd_create("recording", MFD_CLOEXEC)) {
    if (file_ < 0) throw std::system_error(errno, std::generic_category(), "memfd_create");
  }
  CapturedGraph(const CapturedGraph&) = delete;
  CapturedGraph& operator=(const CapturedGraph&) = delete;
  ~CapturedGraph() { ::close(file_); }

  int file() const { return file_; }
  std::string text() const {
    std::string all(static_cast<std::size_t>(::lseek(file_, 0, SEEK_END)), '\0');
    const ssize_t got = ::pread(file_, all.data(), all.size(), 0);
    all.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return all;
  }

 private:
  int file_;
};

std::vector<std::string> changed_environment(const std::map<std::string, std::string>& changes) {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (!changes.contains(text.substr(0, text.find('=')))) result.push_back(text);
  }
  for (const auto& [name, value] : changes) result.emplace_back(name).append("=").append(value);
  return result;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

pid_t start(std::vector<std::string> arguments, std::vector<std::string> environment, int output, int errors) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  // A process group of its own, so that a timeout ends a launcher's ranks too.
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);

  pid_t process = 0;
  const int code = ::posix_spawnp(&process, arguments.front().c_str(), &actions, &attributes,
                                  pointers(arguments).data(), pointers(environment).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (code != 0) throw std::system_error(code, std::generic_category(), arguments.front());
  return process;
}

}  // namespace

ProgramResult run_program(const std::vector<std::string>& arguments,
                          const std::map<std::string, std::string>& environment, std::chrono::seconds timeout) {
#ifdef __SANITIZE_ADDRESS__
  timeout *= 8;  // as CTest's limits there, see lockstep_ctest
#endif
  const CapturedGraph output;
  const CapturedGraph errors;
  const pid_t process = start(arguments, changed_environment(environment), output.file(), errors.file());

  ProgramResult result;
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  int status = 0;
  while (::waitpid(process, &status, result.timed_out ? 0 : WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > deadline) {
      result.timed_out = true;
      ::kill(-process, SIGKILL);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
  result.output = output.text();
  result.errors = errors.text();
  return result;
}

std::filesystem::path built_program(const std::string& name) {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path() / name;
}

std::vector<std::string> under_mpirun(int ranks, const std::vector<std::string>& arguments) {
  std::vector<std::string> all = {"mpirun", "--oversubscribe", "--bind-to", "none", "-n", std::to_string(ranks)};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return all;
}

}  // namespace lockstep
