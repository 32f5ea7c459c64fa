// The fields of OpenPAI's protocol, version 2: which are supported, and how fields without a Slurm equivalent are
// treated.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "slurm/submit/yaml.hpp"

namespace lockstep {

enum class FieldSupport : std::uint8_t {
  supported,
  unused,   // does not affect how the job runs
  warned,   // the job runs without it
  refused,  // the job would not do what it is meant to
};

struct JobField {
  std::string_view name;
  FieldSupport support = FieldSupport::supported;
  std::string_view reason = {};  // of a warning or refusal: "Why. What to try"
};

namespace job_fields {
std::span<const JobField> job();
std::span<const JobField> prerequisite();
std::span<const JobField> task_role();
std::span<const JobField> completion();
std::span<const JobField> container_options();
std::span<const JobField> resources();
std::span<const JobField> deployment();
std::span<const JobField> deployed_role();
std::span<const JobField> defaults();
std::span<const JobField> extras();
std::span<const JobField> lockstep();  // Lockstep's own, in `extras`
std::span<const JobField> plugin();
std::span<const JobField> cmd_parameters();
std::span<const JobField> callback();
std::span<const JobField> storage();         // an entry of extras.storages
std::span<const JobField> storage_plugin();  // parameters of teamwise_storage
// By the value of the field `plugin`.
std::span<const JobField> plugins();
}  // namespace job_fields

// "data.uri.0" for the path "data.uri[0]", which means the same on OpenPAI.
std::string with_dots(std::string_view path);

// Checks a job file. Holds its name, for messages, and the warnings so far.
class JobReader {
 public:
  // Values with the line -1 come from the first of `options`, such as "--set parameters.epochs"; -2: from the second.
  JobReader(std::string name, std::vector<std::string> options)
      : name_(std::move(name)), options_(std::move(options)) {}

  // Throws Error(usage): "'job.yaml', line 12: MESSAGE. Nothing was submitted."
  [[noreturn]] void refuse(int line, std::string_view message) const;
  void warn(int line, std::string_view message);

  // Refuses a value that is not a map, fields that are not in the table, and fields that the table refuses. Warns about
  // others as the table says. `owner` completes "the field 'x' of ".
  void check_fields(const YamlValue& value, std::span<const JobField> fields, std::string_view owner);
  // Warns about a field or refuses it, as the table says.
  void enforce(const JobField& field, int line, std::string_view owner);

  // The value of a text field.
  const std::string& text(const YamlValue& value, std::string_view field) const;
  // An integer in a range. 2.0, 1e3 and quoted integers are accepted.
  std::int64_t number(const YamlValue& value, std::string_view field, std::int64_t least, std::int64_t most) const;
  const std::vector<YamlValue>& list(const YamlValue& value, std::string_view field) const;
  const std::vector<YamlEntry>& map(const YamlValue& value, std::string_view field) const;

  std::vector<std::string> take_warnings() { return std::move(warnings_); }

 private:
  std::string place(int line) const;

  std::string name_;
  std::vector<std::string> options_;
  std::vector<std::string> warnings_;
};

}  // namespace lockstep
