// Commands of a job file with their references: <% $parameters.epochs %>.
#pragma once

#include <map>
#include <string>

#include "slurm/submit/job_fields.hpp"
#include "slurm/submit/shell_text.hpp"

namespace lockstep {

// What references of one role stand for.
struct References {
  struct Value {
    std::string text;
    std::string variable;    // holds it when the commands run; empty: none does
    bool is_secret = false;  // then the variable alone stands in the commands
  };
  std::map<std::string, Value, std::less<>> values;  // by "$parameters.epochs"
};

// Variables are named by these and the value's name.
inline constexpr std::string_view parameter_variable = "LOCKSTEP_PARAMETER_";
inline constexpr std::string_view secret_variable = "LOCKSTEP_SECRET_";

// A script for bash, built command by command, each on a line of its own.
class JobCommands {
 public:
  // Both outlive this.
  JobCommands(const JobReader& reader, const References& references) : reader_(reader), references_(references) {}

  // Refuses references to nothing, and values that bash would read something into where their quoting cannot be told.
  void add(const YamlValue& command);
  const std::string& script() const { return script_; }

 private:
  std::string put(const std::string& reference, int line);

  const JobReader& reader_;
  const References& references_;
  ShellReader shell_;
  std::string script_;
};

}  // namespace lockstep
