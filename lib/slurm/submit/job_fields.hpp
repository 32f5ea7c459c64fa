// The fields of OpenPAI's protocol, version 2: which are taken, and what becomes of those that Slurm has nothing for.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "slurm/submit/yaml.hpp"

namespace lockstep {

enum class FieldSupport : std::uint8_t {
  taken,
  unused,   // says nothing of how the job runs
  warned,   // the job runs without it
  refused,  // it would not do what it is meant to
};

struct JobField {
  std::string_view name;
  FieldSupport treatment = FieldSupport::taken;
  std::string_view reason = {};  // of a warning or a refusal: "(why). What to try"
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
std::span<const JobField> lockstep();  // ours, among the extras
std::span<const JobField> plugin();
std::span<const JobField> callback();
// By the value of the field `plugin`.
std::span<const JobField> plugins();
}  // namespace job_fields

// What reads a job file: its name, for messages, and what it has warned of.
class JobReader {
 public:
  explicit JobReader(std::string name) : name_(std::move(name)) {}

  // Throws Error(usage): "'job.yaml', line 12: WORDS. Nothing was submitted."
  [[noreturn]] void refuse(int line, std::string_view message) const;
  void warn(int line, std::string_view message);

  // Refuses a value that is no map, fields that the table has not, and those that it refuses; warns of others.
  // `owner` completes "the field 'x' of ".
  void check_fields(const YamlValue& value, std::span<const JobField> fields, std::string_view owner);
  // Warns of a field, or refuses it, as the table says.
  void treat(const JobField& field, int line, std::string_view owner);

  // Null: the field is not there, or null.
  static const YamlValue* find(const YamlValue& map, std::string_view field);
  // The words of a text.
  const std::string& text(const YamlValue& value, std::string_view field) const;
  // A whole number in a range; 2.0 and 1e3 are whole. Quoted ones are taken too.
  std::int64_t number(const YamlValue& value, std::string_view field, std::int64_t least, std::int64_t most) const;
  const std::vector<YamlValue>& list(const YamlValue& value, std::string_view field) const;
  const std::vector<YamlEntry>& map(const YamlValue& value, std::string_view field) const;

  std::vector<std::string> take_warnings() { return std::move(warnings_); }

 private:
  std::string name_;
  std::vector<std::string> warnings_;
};

}  // namespace lockstep
