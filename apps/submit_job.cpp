// Runs a job file of OpenPAI (protocol version 2) under Slurm: writes its sbatch script and submits it.
//
//   submit_job job.yaml --dry-run      prints the script
//   submit_job job.yaml
#include <cstdlib>
#include <optional>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/log.hpp"
#include "launch/run_outside_ranks.hpp"
#include "slurm/submit/job_script.hpp"
#include "slurm/submit/submission.hpp"

using namespace lockstep;

namespace {

struct SubmitOptions {
  std::filesystem::path file;
  std::filesystem::path site;
  bool dry_run = false;

  void declare(CLI::App& app) {
    app.description("Runs a job file of OpenPAI (protocol version 2) under Slurm.");
    app.add_option("FILE", file, "The job, in YAML")->required();
    app.add_option("--site", site, "The site's profile (see slurm/README.md)")->type_name("FILE");
    app.add_flag("--dry-run", dry_run, "Print the script for sbatch, without secrets, and submit nothing");
  }
};

int submit(const JobFile& job, const SubmitOptions& options) {
  const std::filesystem::path library = job_scripts_folder();
  std::optional<SecretsFile> secrets;
  if (!job.secrets.empty()) secrets.emplace(std::filesystem::current_path(), job.name, secrets_text(job));
  const std::string script = job_script(job, {library, secrets ? secrets->path() : std::filesystem::path()});
  if (!options.site.empty()) {
    require(!is_absent(options.site), Failure::usage, "there is no '{}' (--site). Nothing was submitted.",
            options.site.string());
    ::setenv("LOCKSTEP_SITE", std::filesystem::absolute(options.site).c_str(), 1);  // NOLINT: no thread yet
  }
  std::vector<std::string> words = {(library / "site_sbatch").string()};
  if (!job.virtual_cluster.empty()) words.push_back("--partition=" + job.virtual_cluster);
  const int code = run_with_input(words, script);
  require(code == 0, Failure::usage, "sbatch refused the job (its words are above). Nothing was submitted.");
  if (secrets) secrets->keep();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return run_outside_ranks<SubmitOptions>(argc, argv, [](const SubmitOptions& options) {
    const JobFile job = read_job_file(options.file);
    for (const std::string& warning : job.warnings) log::warning(warning);
    if (!options.dry_run) return submit(job, options);
    const std::filesystem::path secrets = job.secrets.empty() ? "" : std::filesystem::current_path() / "SECRETS";
    log::plain(job_script(job, {job_scripts_folder(), secrets}));
    return 0;
  });
}
