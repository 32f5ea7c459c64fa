// Passes a script to sbatch without a shell.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

using TakeLine = std::function<void(const std::string& line)>;
// Runs `words` with `input` as standard input, this process's environment, and no signals blocked. The first word is
// the program, found in PATH if it contains no '/'. Its output goes line by line to `take_line`, or to this process's
// output if `take_line` is empty. Returns its exit code, or 128 + the signal that ended it. Throws Error(usage) if it
// cannot be started.
int run_with_input(const std::vector<std::string>& words, std::string_view input, const TakeLine& take_line = {});

// The folder of job.sh beside the running program, in a build or in an installed prefix. Throws Error(usage) if it is
// in neither place.
std::filesystem::path job_scripts_folder();

// A file in the folder `place`, readable only by its owner and named after the job; the path is absolute. The
// destructor removes it unless keep() was called.
class SecretsFile {
 public:
  // Throws what write_file_atomically() throws.
  SecretsFile(const std::filesystem::path& place, const std::string& job, std::string_view text);
  SecretsFile(const SecretsFile&) = delete;
  SecretsFile& operator=(const SecretsFile&) = delete;
  ~SecretsFile();

  void keep() { is_kept_ = true; }
  const std::filesystem::path& path() const { return path_; }
  // A unique tag for the job's comment in Slurm.
  const std::string& tag() const { return tag_; }

 private:
  std::string tag_;
  std::filesystem::path path_;
  bool is_kept_ = false;
};

}  // namespace lockstep
