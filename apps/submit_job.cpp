// Submits an OpenPAI job file (protocol version 2) to Slurm: writes its sbatch script and calls sbatch.
//
//   submit_job job.yaml --dry-run      prints the script
//   submit_job job.yaml --set parameters.epochs=1 --name short --time 2:00:00 -- --exclusive
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <sstream>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/log.hpp"
#include "launch/run_outside_ranks.hpp"
#include "slurm/submit/blocked_signals.hpp"
#include "slurm/submit/cluster_gpus.hpp"
#include "slurm/submit/job_script.hpp"
#include "slurm/submit/sbatch_arguments.hpp"
#include "slurm/submit/sbatch_run.hpp"
#include "slurm/submit/shell_text.hpp"
#include "slurm/submit/submission.hpp"

using namespace lockstep;

namespace {

struct SubmitOptions {
  std::filesystem::path file;
  std::filesystem::path site;
  std::vector<std::string> changes;
  std::optional<std::string> name;
  bool dry_run = false;
  SbatchChoices choices;

  void declare(CLI::App& app) {
    app.description("Submits an OpenPAI job file (protocol version 2) to Slurm.");
    app.add_option("FILE", file, "Job file, in YAML")->required()->type_name("FILE");
    app.add_option("--set", changes,
                   "Replace a value of the job file, such as parameters.epochs=1 or "
                   "taskRoles.worker.resourcePerInstance.gpu=0 (repeatable)")
        ->type_name("PATH=VALUE")
        ->allow_extra_args(false);
    app.add_option("--name", name, "Name of the job, instead of the file's")->type_name("NAME");
    app.add_option("--site", site, "Site profile (see slurm/README.md)")->type_name("FILE");
    app.add_option("--time", choices.time,
                   "Time limit in sbatch's format: 30 (minutes), 2:00:00, 1-12 (days-hours) (default: the partition's)")
        ->type_name("TIME")
        ->check(CLI::Validator(
            [](const std::string& time) { return std::string(time.empty() ? "the time limit is empty" : ""); }, "",
            "time"));
    app.add_flag("--dry-run", dry_run, "Print the script for sbatch and its options, without secrets. Submit nothing");
    app.add_option("SBATCH_OPTIONS", choices.options,
                   "Options of sbatch, after '--', each in one word, such as --mail-user=me");
    app.footer(
        "Examples:\n  submit_job job.yaml --dry-run\n  submit_job job.yaml --set parameters.epochs=1 --name short\n"
        "  submit_job job.yaml --time 2:00:00 -- --exclusive");
  }
};

void choose_site(const SubmitOptions& options) {
  if (options.site.empty()) return;
  require(!is_absent(options.site), Failure::usage,
          "the site profile '{}' (--site) does not exist. Nothing was submitted.", options.site.string());
  ::setenv("LOCKSTEP_SITE", std::filesystem::absolute(options.site).c_str(), 1);  // NOLINT: no thread yet
}

std::vector<JobChange> changes_in(const SubmitOptions& options) {
  std::vector<JobChange> changes;
  for (const std::string& change : options.changes) changes.push_back(parse_job_change(change));
  if (options.name) changes.push_back({"--name", "name", *options.name});
  return changes;
}

int submit(const JobFile& job, const std::filesystem::path& library, const std::vector<std::string>& choices) {
  BlockedSignals signals;  // otherwise a signal would leave the secrets file behind
  std::optional<SecretsFile> secrets;
  if (!job.secrets.empty()) secrets.emplace(std::filesystem::current_path(), job.name, secrets_text(job));
  const std::string script = job_script(job, {library, secrets ? secrets->path() : std::filesystem::path()});
  std::vector<std::string> words = {(library / "site_sbatch").string()};
  words.insert(words.end(), choices.begin(), choices.end());
  try {
    return run_sbatch(words, script, secrets ? &*secrets : nullptr, signals);
  } catch (const Error& error) {
    log::error(error.what());
    return error.exit_code();
  }
}

int show(const JobFile& job, const std::filesystem::path& library, const std::vector<std::string>& choices) {
  std::vector<std::string> words = {(library / "site_sbatch").string(), "--show"};
  words.insert(words.end(), choices.begin(), choices.end());
  if (!job.secrets.empty()) add_comment(words, "submit_job:NUMBER");
  std::string text;
  run_with_input(words, "", [&](const std::string& line) { text += line + '\n'; });
  std::string shown;
  std::istringstream rest(text);
  for (std::string word; std::getline(rest, word, '\0') && !rest.eof();) {
    const bool is_plain = is_plain_text(word) && word.find_first_of(" \t") == std::string::npos;
    shown += " " + (is_plain ? word : shell_word(word));
  }
  if (!shown.empty()) log::warning("options of sbatch:{}", shown);
  const std::filesystem::path secrets = job.secrets.empty() ? "" : std::filesystem::current_path() / "SECRETS";
  log::plain(job_script(job, {library, secrets}));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return run_outside_ranks<SubmitOptions>(argc, argv, [](const SubmitOptions& options) {
    choose_site(options);
    const std::filesystem::path library = job_scripts_folder();
    SiteProfile site = read_site_profile(library);
    site.sends_mail = site.sends_mail || std::ranges::any_of(options.choices.options, names_mail);
    const JobFile job = read_job_file(options.file, changes_in(options), site);
    for (const std::string& warning : job.warnings) log::warning(warning);
    const std::vector<std::string> choices = sbatch_arguments(job.virtual_cluster, options.choices);
    require(job.secrets.empty() || job.array || !makes_array(options.choices), Failure::usage,
            "a job with secrets cannot be a job array, because the first task that ends removes the secrets. Submit "
            "the job several times, or write 'gangAllocation: false' if its instances are independent.");
    if (!states_time(options.choices)) log::warning(no_time_limit_message);
    require_gpus(job, choices, site);
    if (options.dry_run) return show(job, library, choices);
    require_pyxis(site);
    return submit(job, library, choices);
  });
}
