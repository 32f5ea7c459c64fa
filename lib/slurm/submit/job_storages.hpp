// The storages of a job file: the runtime plugin teamwise_storage, and extras.storages.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "slurm/roles/role.hpp"
#include "slurm/submit/job_commands.hpp"
#include "slurm/submit/job_fields.hpp"
#include "slurm/submit/site_profile.hpp"

namespace lockstep {

// Reads the parameters of the plugin. As on OpenPAI, a storage is mounted at /mnt/NAME, and no name means the default
// storage. Refuses storages that the site profile does not map.
void read_storage_plugin(JobReader& reader, const SiteProfile& site, const YamlValue& plugin,
                         std::vector<Storage>& storages);
// Reads extras.storages, where the mount path may be stated.
void read_storage_list(JobReader& reader, const SiteProfile& site, const YamlValue& list,
                       std::vector<Storage>& storages);

// The job's storages as the role finds them, and the default one. Without a container, `mount` stays only if it is the
// storage's path. Else, refuses commands that name it; `line` is theirs.
std::vector<Storage> storages_of_role(const JobReader& reader, const SiteProfile& site,
                                      const std::vector<Storage>& storages, const Role& role, const std::string& script,
                                      const References& references, int line);

// Whether a script contains the absolute path, or one within it.
bool names_path(std::string_view script, std::string_view path);

}  // namespace lockstep
