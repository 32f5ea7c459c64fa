// Handing a script to sbatch, without a shell.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

using TakeLine = std::function<void(const std::string& line)>;
// Runs `words`, the first being the program (looked up in PATH where it has no '/'), with `input` as its standard
// input, this process's environment, and no signal held back. What it prints goes to `take_line`, line by line; where
// that is empty, to this process's output. Returns its exit code, or 128 + the signal that ended it. Throws
// Error(usage) if it cannot be started.
int run_with_input(const std::vector<std::string>& words, std::string_view input, const TakeLine& take_line = {});

// The folder of job.sh beside the program that runs: of a build, or of an installed prefix. Throws Error(usage) if it
// is in neither place.
std::filesystem::path job_scripts_folder();

// A file of its own in the folder `place`, readable for its owner alone, named after the job; absolute. It is removed
// with this object unless keep() was called.
class SecretsFile {
 public:
  // Throws Error as write_file_atomically() does.
  SecretsFile(const std::filesystem::path& place, const std::string& job, std::string_view text);
  SecretsFile(const SecretsFile&) = delete;
  SecretsFile& operator=(const SecretsFile&) = delete;
  ~SecretsFile();

  void keep() { is_kept_ = true; }
  const std::filesystem::path& path() const { return path_; }
  // For the job's comment in Slurm: no other file has it.
  const std::string& tag() const { return tag_; }

 private:
  std::string tag_;
  std::filesystem::path path_;
  bool is_kept_ = false;
};

}  // namespace lockstep
