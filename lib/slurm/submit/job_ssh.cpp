#include "slurm/submit/job_ssh.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "base/text/number.hpp"
#include "slurm/submit/shell_text.hpp"

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

bool is_in_word(char letter) {
  return is_digit(letter) || (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
         std::string_view("_-./").find(letter) != std::string_view::npos;
}

// The commands of a script that start programs on other hosts: from the program's name to the command's end.
std::vector<std::string> remote_commands(std::string_view script) {
  std::vector<std::string> commands;
  std::size_t from = 0;
  for (std::size_t end = 0; end < script.size(); from = end + 1) {
    end = std::min(script.find_first_of("\n;|&", from), script.size());
    while (end < script.size() && end > 0 && script[end - 1] == '\\') {
      end = std::min(script.find_first_of("\n;|&", end + 1), script.size());
    }
    const std::string_view command = script.substr(from, end - from);
    for (const std::string_view program : {"mpirun", "mpiexec", "orterun", "horovodrun", "ssh"}) {
      const std::size_t at = command.find(program);
      const std::size_t next = at + program.size();
      const bool is_word = at != command.npos && (at == 0 || !is_in_word(command[at - 1]) || command[at - 1] == '/') &&
                           next < command.size() && !is_in_word(command[next]);
      if (is_word) commands.emplace_back(command.substr(next));
    }
  }
  return commands;
}

// The first instance in the text that the job does not have; empty: none.
std::string missing_instance(const std::vector<Role>& roles, std::string_view text) {
  for (const Role& role : roles) {
    const std::string beginning = role.name + "-";
    for (std::size_t at = 0; at < text.size();) {
      const std::string instance = instance_in(text.substr(at), beginning);
      if (instance.empty()) break;
      const auto index = parse_number<std::int64_t>(instance.substr(beginning.size()), {0, role.instances - 1});
      if (!index) return instance;
      at = text.find(instance, at) + instance.size();
    }
  }
  return "";
}

// The first instance in the text; empty: none.
std::string any_instance(const std::vector<Role>& roles, std::string_view text) {
  for (const Role& role : roles) {
    std::string instance = instance_in(text, role.name + "-");
    if (!instance.empty()) return instance;
  }
  return "";
}

void check_command(const JobReader& reader, const JobFile& job, std::string_view command, int line) {
  const std::string instance = any_instance(job.roles, command);
  if (!instance.empty() && !job.has_ssh) {
    reader.refuse(line, fmt::format("a command starts programs on the instance '{}', which it cannot reach. For MPI, "
                                    "list the roles in 'world' (extras.lockstep), and leave out mpirun. Or add the "
                                    "plugin ssh with 'jobssh: true' to extras.com.microsoft.pai.runtimeplugin",
                                    instance));
  }
  const std::string missing = missing_instance(job.roles, command);
  if (!missing.empty()) {
    reader.refuse(line, fmt::format("a command starts programs on '{}', which the job does not have. Change the "
                                    "command, or the 'instances' of the role",
                                    missing));
  }
}

}  // namespace

std::string instance_in(std::string_view text, std::string_view beginning) {
  for (std::size_t at = text.find(beginning); at != text.npos; at = text.find(beginning, at + 1)) {
    std::size_t end = at + beginning.size();
    while (end < text.size() && is_digit(text[end])) ++end;
    const bool begins_word = at == 0 || !is_in_word(text[at - 1]);
    if (begins_word && end > at + beginning.size()) return std::string(text.substr(at, end - at));
  }
  return "";
}

void check_ssh(JobReader& reader, const JobFile& job, int line) {
  bool has_container = false;
  for (const Role& role : job.roles) {
    const bool is_contained = !role.container.program.empty();
    has_container = has_container || is_contained;
    const std::string& script = role.command[role.command.size() - 2];  // before the name of `bash -c`
    const std::string instance = is_contained && job.has_ssh ? any_instance(job.roles, script) : "";
    if (!instance.empty()) {
      reader.refuse(line, fmt::format("the commands use the instance '{}', which 'jobssh' cannot reach from a "
                                      "container, because its image has no srun. For MPI, list the roles in 'world' "
                                      "(extras.lockstep), and leave out mpirun",
                                      instance));
    }
    for (const std::string& command : remote_commands(script)) check_command(reader, job, command, line);
  }
  if (!job.has_ssh || !has_container) return;
  reader.warn(line,
              "'jobssh' does not connect instances in containers, because their images have no srun. For MPI, use "
              "'world' of extras.lockstep");
}

bool read_ssh_plugin(JobReader& reader, const YamlValue& parameters) {
  reader.check_fields(parameters, parameters_table, "the plugin ssh");
  const auto is_true = [&](std::string_view field) {
    const YamlValue* const value = find_value(parameters, field);
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
