// Commands of a job file with their references: <% $parameters.epochs %>.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

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
  std::map<std::string, Value, std::less<>> values;  // by "$parameters.epochs", "$data.uri.0"
};

// Variables are named by these and the value's name.
inline constexpr std::string_view parameter_variable = "LOCKSTEP_PARAMETER_";
inline constexpr std::string_view secret_variable = "LOCKSTEP_SECRET_";

// A script for bash, built command by command, each on a line of its own. As on the platform, a value without quotes
// around it is as many words as it holds. Otherwise a value is itself: bash reads nothing into it.
class JobCommands {
 public:
  // Both outlive this.
  JobCommands(const JobReader& reader, const References& references) : reader_(reader), references_(references) {}

  // Refuses references to nothing, and values that bash would read something into: where their quoting cannot be told,
  // and where bash evaluates them.
  void add(const YamlValue& command);
  // When all are added, the last of them on `line`: refuses values that bash runs where the commands evaluate a
  // variable that holds them.
  void check_variables(int line) const;
  const std::string& script() const { return script_; }

 private:
  const References::Value& find(const std::string& reference, int line) const;
  std::string put(const std::string& reference, int line);
  [[noreturn]] void refuse_evaluated(const std::string& reference, int line, std::string_view command) const;

  const JobReader& reader_;
  const References& references_;
  ShellReader shell_;
  std::set<std::string> put_;  // references
  std::string last_;           // of them
  std::string script_;
};

}  // namespace lockstep
