#include "slurm/submit/submission.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <random>

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

// What the program reads from its start; in memory alone.
Descriptor input_file(std::string_view text) {
  Descriptor file(::memfd_create("input", MFD_CLOEXEC));
  const bool is_ready = file >= 0 && write_all(file, text) && ::lseek(file, 0, SEEK_SET) == 0;
  if (!is_ready) throw system_failure("cannot keep the script in memory", errno, Access::shared_memory);
  return file;
}

}  // namespace

int run_with_input(const std::vector<std::string>& words, std::string_view input) {
  const Descriptor file = input_file(input);
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw system_failure("cannot start a program", errno, Access::reading);
  const Descriptor failure(ends[0]);
  Descriptor told(ends[1]);  // closed by the program's start; otherwise it has the reason
  const pid_t process = ::fork();
  if (process < 0) throw system_failure("cannot start a program", errno, Access::reading);
  if (process == 0) {
    if (::dup2(file, STDIN_FILENO) >= 0) ::execvp(arguments.front(), arguments.data());
    const int reason = errno;
    static_cast<void>(::write(told, &reason, sizeof reason) + 0);
    ::_exit(127);
  }
  told.close();
  int reason = 0;
  const bool has_failed = ::read(failure, &reason, sizeof reason) == sizeof reason;
  int status = 0;
  while (::waitpid(process, &status, 0) < 0 && errno == EINTR) continue;
  require(!has_failed, Failure::usage, "cannot start '{}': {}. Is it installed, and in PATH?", words.front(),
          system_words(reason));
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
              fmt::format("no job scripts beside '{}' (../slurm/job.sh of a build, ../share/lockstep/slurm/job.sh of a "
                          "prefix). Is Lockstep installed whole?",
                          programs.string()));
}

SecretsFile::SecretsFile(const fs::path& place, const std::string& job, std::string_view text) {
  std::random_device random;
  const std::string name = fmt::format(".{}.{:08x}{:08x}.secrets", job.substr(0, 64), random(), random());
  path_ = fs::absolute(place) / name;
  Descriptor file(create_new_file(path_.c_str()));
  // Closed to others before anything is in it.
  const bool is_made = file >= 0 && ::fchmod(file, S_IRUSR | S_IWUSR) == 0;
  if (is_made && write_all(file, text) && ::fsync(file) == 0 && file.close()) return;
  const int reason = errno;
  if (file >= 0) ::unlink(path_.c_str());
  throw system_failure(fmt::format("cannot write '{}'", path_.string()), reason, Access::writing, "the job's secrets");
}

SecretsFile::~SecretsFile() {
  if (!is_kept_) ::unlink(path_.c_str());
}

}  // namespace lockstep
