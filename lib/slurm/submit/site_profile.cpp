#include "slurm/submit/site_profile.hpp"

#include <string_view>

#include "base/error.hpp"
#include "slurm/submit/submission.hpp"

namespace lockstep {
namespace {

// If the key is "<section>.<name>", adds the value under the name.
void add(std::string_view section, std::string_view key, std::string_view value, SiteProfile::Paths& paths) {
  if (!key.starts_with(section) || key.substr(section.size(), 1) != ".") return;
  paths.emplace(key.substr(section.size() + 1), value);
}

}  // namespace

SiteProfile read_site_profile(const std::filesystem::path& library) {
  SiteProfile site;
  constexpr const char* print_settings =
      R"(source "$1/site.sh" && read_site_profile && for key in "${!site[@]}"; do echo "$key=${site[$key]}"; done)";
  const int code =
      run_with_input({"bash", "-c", print_settings, "submit_job", library.string()}, "", [&](const std::string& line) {
        const std::size_t end = line.find('=');
        const std::string key = line.substr(0, end);
        const std::string value = line.substr(end + 1);
        if (key == "partition") site.partition = value;
        if (key == "mail_type") site.sends_mail = !value.empty() && value != "NONE";
        if (key == "container") site.container = value;
        add("image", key, value, site.images);
        add("storage", key, value, site.storages);
      });
  require(code == 0, Failure::usage, "the site profile is not valid, see the message above. Nothing was submitted.");
  require(site.images.empty() || !site.container.empty(), Failure::usage,
          "the site profile maps images, but not the program that runs them. Add container=apptainer, charliecloud or "
          "pyxis. Nothing was submitted.");
  return site;
}

void require_pyxis(const SiteProfile& site) {
  if (site.container != "pyxis") return;
  bool has_plugin = false;
  run_with_input({"srun", "--help"}, "", [&](const std::string& line) {
    has_plugin = has_plugin || line.find("--container-image") != std::string::npos;
  });
  require(has_plugin, Failure::usage,
          "srun has no option --container-image, so this Slurm lacks the plugin pyxis, which the site profile sets as "
          "'container'. Choose apptainer or charliecloud there. Nothing was submitted.");
}

}  // namespace lockstep
