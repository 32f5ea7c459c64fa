#include "first_step.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/log.hpp"
#include "job/job_environment.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view flag = "--first-step";

// A temporary folder; the destructor removes it with its contents.
class Folder {
 public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "first-step-XXXXXX").string();
    require(::mkdtemp(name.data()) != nullptr, Failure::usage, "cannot make the folder '{}': {}. Set TMPDIR?", name,
            system_error_message(errno));
    path_ = name;
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

// This program's command line without --first-step, and with one step.
std::vector<std::string> child_message(int argc, char** argv, const fs::path& plans) {
  std::vector<std::string> words{fs::read_symlink("/proc/self/exe")};
  for (int index = 1; index < argc; ++index) {
    const std::string_view word = argv[index];
    if (word == "--steps") ++index;
    if (word != flag && word != "--steps" && !word.starts_with("--steps=")) words.emplace_back(word);
  }
  words.insert(words.end(), {"--steps", "1", "--plan-folder", plans.string()});
  return words;
}

// The program's standard output.
std::string output_of(std::vector<std::string> words, const fs::path& recording) {
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, recording.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  pid_t process = 0;
  const int code = ::posix_spawn(&process, words.front().c_str(), &actions, nullptr, pointers.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  require(code == 0, Failure::other, "cannot start '{}': {}. Is it still there?", words.front(),
          system_error_message(code));
  int status = 0;
  while (::waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  require(WIFEXITED(status) && WEXITSTATUS(status) == 0, Failure::other,
          "the program that {} started failed. Its words stand above.", flag);
  return read_file(recording, std::size_t{1} << 24);
}

// Parses the last line. --verbose prints other lines before it.
nlohmann::json json_line(std::string_view output) {
  const std::size_t end = output.find_last_not_of('\n') + 1;
  const std::size_t start = output.substr(0, end).rfind('\n');
  nlohmann::json line = nlohmann::json::parse(output.substr(start + 1, end - start - 1), nullptr, false);
  require(line.contains("first_step_seconds"), Failure::usage,
          "{} found no figures in what the program printed. Leave out --help and --version?", flag);
  return line;
}

void print_first_steps(int argc, char** argv) {
  const Launcher launcher = this_job().launcher;
  require(launcher == Launcher::none, Failure::usage,
          "{} starts programs of one rank (this one is a rank of {}). Start it alone.", flag, launcher_name(launcher));
  const Folder folder;
  const std::vector<std::string> words = child_message(argc, argv, folder.path() / "plans");
  const nlohmann::json cold = json_line(output_of(words, folder.path() / "cold"));
  const nlohmann::json warm = json_line(output_of(words, folder.path() / "warm"));
  nlohmann::json line = {{"first_step_seconds_cold", cold.at("first_step_seconds")},
                         {"first_step_seconds_warm", warm.at("first_step_seconds")},
                         {"kernels_measured_cold", cold.at("kernels_measured")},
                         {"kernels_measured_warm", warm.at("kernels_measured")}};
  for (const char* same : {"model", "image_size", "batch_per_rank", "precision", "device"}) line[same] = cold.at(same);
  log::plain(line.dump());
}

}  // namespace

bool asks_for_first_step(int argc, char** argv) {
  for (int index = 1; index < argc; ++index) {
    if (argv[index] == flag) return true;
  }
  return false;
}

int time_first_steps(int argc, char** argv) {
  try {
    print_first_steps(argc, argv);
    return 0;
  } catch (const Error& error) {
    log::error(error.what());
    return error.exit_code();
  }
}

}  // namespace lockstep
