// What the site profile (slurm/site.profile.example) maps for job files: container images and storages.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>

namespace lockstep {

struct SiteProfile {
  using Paths = std::map<std::string, std::string, std::less<>>;

  std::string container;       // one of container_programs; empty: roles run on the nodes themselves
  Paths images;                // by Docker URI or prerequisite's name
  Paths storages;              // by name
  std::string partition = {};  // empty: Slurm chooses
  bool sends_mail = false;     // mail_type asks Slurm for mail
};

// Reads the profile with the job scripts' own parser, site.sh in the folder `library`. Throws Error(usage) if the
// profile is not valid; the parser prints why.
SiteProfile read_site_profile(const std::filesystem::path& library);

// Throws Error(usage) if the profile's container program is pyxis, and srun lacks this plugin.
void require_pyxis(const SiteProfile& site);

}  // namespace lockstep
