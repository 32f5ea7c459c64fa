// A job of OpenPAI (its protocol, version 2) as far as Slurm can run it: read from YAML of unknown origin, checked, and
// its commands rendered.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "slurm/roles/role.hpp"

namespace lockstep {

struct JobFile {
  std::string name;
  std::int64_t job_retry_count = 0;
  std::string virtual_cluster;  // a partition; empty (also for the platform's `default`): Slurm's own choice
  std::string output;           // the output folder of the job's training, as a job's retries need it; empty: not told
  std::vector<Role> roles;  // checked; the command of each is bash with a script: pre-commands, commands, post-commands
  // By the name of the variable that the commands find them in.
  std::map<std::string, std::string> parameters;
  std::map<std::string, std::string> secrets;
  std::vector<std::string> warnings;  // a sentence for each field that is asked for and does nothing here
};

// `name` is the file's, for messages. Throws Error(usage) with the line where the text is no such job, asks for what
// Slurm cannot do and the job could not do without, has an unknown field, or contradicts itself. No secret stands in a
// message.
JobFile parse_job_file(const std::string& text, const std::string& name);
JobFile read_job_file(const std::filesystem::path& path);

}  // namespace lockstep
