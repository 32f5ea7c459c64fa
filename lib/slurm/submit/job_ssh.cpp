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

bool is_digit(char letter) { return letter >= '0' && letter <= '9'; }
bool is_in_word(char letter) {
  return is_digit(letter) || (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
         std::string_view("_-./").find(letter) != std::string_view::npos;
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

std::string instance_in_containers(const std::vector<Role>& roles) {
  for (const Role& role : roles) {
    if (role.container.program.empty()) continue;
    for (const std::string& word : role.command) {
      for (const Role& other : roles) {
        std::string instance = instance_in(word, other.name + "-");
        if (!instance.empty()) return instance;
      }
    }
  }
  return "";
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
