#include "job/leave_mpirun.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <vector>

#include "job/job_environment.hpp"

namespace lockstep {

bool is_of_mpirun(std::string_view variable) {
  // Of all parameters of Open MPI (OMPI_MCA_...), mpirun 4 sets those that begin like this, and 5 the last three.
  constexpr std::array<std::string_view, 17> parameters = {"ess",
                                                           "initial_wdir",
                                                           "mpi_oversubscribe",
                                                           "orte_app_num",
                                                           "orte_bound_at_launch",
                                                           "orte_ess_",
                                                           "orte_hnp_uri",
                                                           "orte_jobfam_session_dir",
                                                           "orte_launch",
                                                           "orte_local_daemon_uri",
                                                           "orte_num_nodes",
                                                           "orte_precondition_transports",
                                                           "orte_top_session_dir",
                                                           "pmix",
                                                           "cpu_type",
                                                           "mca_base_component_path",
                                                           "num_procs"};
  constexpr std::string_view parameter = "OMPI_MCA_";
  if (variable.starts_with(parameter)) {
    variable.remove_prefix(parameter.size());
    return std::ranges::any_of(parameters, [&](std::string_view start) { return variable.starts_with(start); });
  }
  if (variable.starts_with("OMPI_ALLOW_RUN_AS_ROOT") || variable.starts_with("PRTE_MCA_")) return false;
  constexpr std::array<std::string_view, 4> families = {"OMPI_", "OPAL_", "PMIX_", "PRTE_"};
  return std::ranges::any_of(families, [&](std::string_view family) { return variable.starts_with(family); });
}

void leave_mpirun() {
  this_job();  // reads the environment at its first call
  std::vector<std::string> names;
  // careful-environment: only names, which are removed
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::string_view name = text.substr(0, text.find('='));
    if (is_of_mpirun(name)) names.emplace_back(name);
  }
  for (const std::string& name : names) ::unsetenv(name.c_str());  // NOLINT(concurrency-mt-unsafe): no thread yet
}

}  // namespace lockstep
