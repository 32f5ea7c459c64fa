// An OpenPAI job (protocol version 2), limited to what Slurm can run. Reads untrusted YAML, checks it and renders the
// commands.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "slurm/roles/role.hpp"
#include "slurm/submit/job_changes.hpp"
#include "slurm/submit/site_profile.hpp"

namespace lockstep {

// The tasks of a job array, each of which runs one instance.
struct JobArray {
  std::int64_t task_retry_count = 0;  // counted retries of each task
  std::int64_t throttle = 0;          // most tasks that run at the same time; 0: no limit
};

inline constexpr std::int64_t max_retries = 1'000;

struct JobFile {
  std::string name;
  std::int64_t job_retry_count = 0;
  std::string virtual_cluster;  // a partition; empty (also for OpenPAI's `default`): Slurm chooses
  std::string output;       // output folder of the job's training, if the file states it; empty: see training_folders()
  std::int64_t nodes = 0;   // over which the instances are divided equally; 0: Slurm chooses
  std::vector<Role> roles;  // checked; each command is bash with a script: pre-commands, commands, post-commands
  std::optional<JobArray> array;  // set: the one role's instances start independently; see job_array.hpp
  bool has_ssh = false;           // the instances reach each other with `ssh ROLE-INDEX`
  // Keyed by the variable's name in the commands.
  std::map<std::string, std::string> parameters;
  std::map<std::string, std::string> secrets;
  std::vector<std::string> warnings;  // one for each field that has no effect here
};

// `name` is the file's name, for messages. `changes` apply before anything else. `site` maps images and storages.
// Throws Error(usage) with the line if the text is not such a job, has an unknown field or contradicts itself. Also
// throws if the job needs a feature that Slurm does not have. Messages never contain a secret.
JobFile parse_job_file(const std::string& text, const std::string& name, const std::vector<JobChange>& changes = {},
                       const SiteProfile& site = {});
JobFile read_job_file(const std::filesystem::path& path, const std::vector<JobChange>& changes,
                      const SiteProfile& site);

}  // namespace lockstep
