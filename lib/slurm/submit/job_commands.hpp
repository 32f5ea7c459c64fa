// The commands of a job file and their references, such as <% $parameters.epochs %>.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "slurm/submit/job_fields.hpp"
#include "slurm/submit/shell_reader.hpp"

namespace lockstep {

// The values that the references of one role stand for.
struct References {
  struct Value {
    std::string text;
    std::string variable;    // holds the value when the commands run; empty: none
    bool is_secret = false;  // if so, the commands contain the variable, never the value
  };
  std::map<std::string, Value, std::less<>> values;  // by "$parameters.epochs", "$data.uri.0"
};

// Prefixes of the variables' names; the value's name follows.
inline constexpr std::string_view parameter_variable = "LOCKSTEP_PARAMETER_";
inline constexpr std::string_view secret_variable = "LOCKSTEP_SECRET_";

// Builds a bash script, one command a line. As on OpenPAI, a value becomes part of the commands' text, if it is plain
// text. Other values and secrets do not: inside double quotes, as a word of a command that is known to run nothing of
// it, the variable that holds the value does. No shell runs anything that a value contains.
class JobCommands {
 public:
  // Both arguments must outlive this object.
  JobCommands(const JobReader& reader, const References& references) : reader_(reader), references_(references) {}

  // Refuses unknown references, and values that a shell or another interpreter might run where they stand.
  void add(const YamlValue& command);
  // Call it after the last add(), whose command is on `line`. Refuses values that other commands may run: those that
  // are stored or printed, and those that bash would execute if the commands evaluate a variable that holds them.
  void check_variables(int line) const;
  const std::string& script() const { return script_; }

 private:
  struct Put {
    std::string reference;
    WordUse use;
  };

  const References::Value& find(const std::string& reference, int line) const;
  std::string text_of(const std::string& reference, int line);
  void check_output(int line) const;

  const JobReader& reader_;
  const References& references_;
  ShellReader shell_;
  std::vector<Put> put_;  // values that are not plain
  std::string script_;
};

}  // namespace lockstep
