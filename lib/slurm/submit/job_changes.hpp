// Values of a job file that the command line replaces.
#pragma once

#include <string>
#include <vector>

#include "slurm/submit/job_fields.hpp"

namespace lockstep {

struct JobChange {
  std::string option;  // for messages: "--set parameters.epochs"
  std::string path;    // parameters.epochs, taskRoles.worker.commands.0
  std::string value;   // as in YAML: [a, b], {a: 1}, "quoted", or else plain text
};

// Parses "PATH=VALUE", the value of --set. In PATH, [0] is the same as .0. Throws Error(usage) if it has no path, or
// changes a secret.
JobChange parse_job_change(const std::string& text);

// Replaces the values in the order of `changes`. A path names a value of the file, or a field of the protocol that the
// file leaves out. The line of a new value is that of its change, which `reader` knows. Refuses a path that names
// nothing, and states the nearest name or all known names. Only parameters may become empty text.
void change_job(const JobReader& reader, const std::vector<JobChange>& changes, YamlValue& root);

}  // namespace lockstep
