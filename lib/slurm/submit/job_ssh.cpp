#include "slurm/submit/job_ssh.hpp"

#include <fmt/format.h>

#include <array>
#include <string_view>

namespace lockstep {
namespace {

// The barrier needs no support of its own: commands start only after all instances have joined the rendezvous of
// run_roles, which has its own timeout (--arrival-timeout).
constexpr std::array parameters_table = std::to_array<JobField>({
    {"jobssh"},
    {"sshbarrier"},
    {"sshbarrierTimeout"},
    {"sshbarriertimeout"},
    {"userssh", FieldSupport::warned, "For a shell in a running job, use: srun --overlap --jobid=JOB --pty bash"},
});

}  // namespace

bool read_ssh_plugin(JobReader& reader, const YamlValue& parameters) {
  reader.check_fields(parameters, parameters_table, "the plugin ssh");
  const auto is_true = [&](std::string_view field) {
    const YamlValue* const value = JobReader::find(parameters, field);
    if (value == nullptr) return false;
    const std::string& text = reader.text(*value, field);
    if (text != "true" && text != "false") {
      reader.refuse(value->line, fmt::format("'{}' of the plugin ssh is neither true nor false", field));
    }
    return text == "true";
  };
  is_true("sshbarrier");
  return is_true("jobssh");
}

}  // namespace lockstep
