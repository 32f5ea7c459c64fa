#include "slurm/submit/job_changes.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>

#include "base/error.hpp"
#include "base/text/nearest_name.hpp"
#include "base/text/number.hpp"
#include "base/text/printable.hpp"

namespace lockstep {
namespace {

// The fields that the protocol knows at a path; empty where names are the user's.
std::span<const JobField> known_fields(const std::vector<std::string>& path) {
  static constexpr std::string_view any = "*";
  const auto is = [&](std::initializer_list<std::string_view> pattern) {
    return std::ranges::equal(path, pattern, [](const std::string& name, std::string_view wanted) {
      return wanted == any || name == wanted;
    });
  };
  if (is({})) return job_fields::job();
  if (is({"defaults"})) return job_fields::defaults();
  if (is({"extras"})) return job_fields::extras();
  if (is({"extras", "lockstep"})) return job_fields::lockstep();
  if (is({"taskRoles", any})) return job_fields::task_role();
  if (is({"taskRoles", any, "completion"})) return job_fields::completion();
  if (is({"taskRoles", any, "extraContainerOptions"})) return job_fields::container_options();
  if (is({"taskRoles", any, "resourcePerInstance"})) return job_fields::resources();
  return {};
}

// Follows a path through the tree, one name after the other. Keys may contain dots: the longest match counts.
class Walk {
 public:
  Walk(const JobReader& reader, const JobChange& change, int line) : reader_(reader), rest_(change.path), line_(line) {}

  YamlValue& end(YamlValue& root) {
    YamlValue* at = &root;
    while (!rest_.empty()) at = at->kind == YamlValue::Kind::list ? &item(*at) : &entry(*at);
    return *at;
  }

 private:
  bool begins_with(std::string_view name) const {
    return rest_.starts_with(name) && (rest_.size() == name.size() || rest_[name.size()] == '.');
  }

  void pass(const std::string& name) {
    rest_.remove_prefix(std::min(rest_.size(), name.size() + 1));
    path_.push_back(name);
  }

  std::string_view next_name() const { return rest_.substr(0, rest_.find('.')); }

  [[noreturn]] void refuse(std::span<const std::string> names) const {
    const std::string here = path_.empty() ? "the job" : fmt::format("'{}'", fmt::join(path_, "."));
    const std::string nearest = nearest_name(next_name(), names);
    std::string advice = nearest.empty() ? fmt::format("Known: {}", fmt::join(names, ", "))
                                         : fmt::format("The nearest name is '{}'", nearest);
    if (names.empty()) advice = "It is a single value";
    reader_.refuse(line_, fmt::format("{} has no '{}'. {}", here, next_name(), advice));
  }

  YamlValue& item(YamlValue& list) {
    const std::string name(next_name());
    const auto last = static_cast<std::int64_t>(list.items.size()) - 1;
    const std::optional<std::int64_t> place = parse_number(name, NumberRange<std::int64_t>{0, last});
    if (!place) {
      std::vector<std::string> names;
      for (std::int64_t one = 0; one <= last; ++one) names.push_back(fmt::format("{}", one));
      refuse(names);
    }
    pass(name);
    return list.items[static_cast<std::size_t>(*place)];
  }

  YamlValue& entry(YamlValue& map) {
    std::vector<std::string> names;
    for (const YamlEntry& one : map.entries) names.push_back(one.key);
    if (map.kind != YamlValue::Kind::text) {
      for (const JobField& field : known_fields(path_)) {
        if (map.find(field.name) == nullptr) names.emplace_back(field.name);
      }
    }
    const auto found = std::ranges::max_element(
        names, {}, [&](const std::string& name) { return begins_with(name) ? name.size() : 0; });
    if (found == names.end() || !begins_with(*found)) refuse(names);
    const std::string name = *found;
    pass(name);
    const auto known = std::ranges::find(map.entries, name, &YamlEntry::key);
    if (known != map.entries.end()) return known->value;
    map.kind = YamlValue::Kind::map;
    map.entries.push_back({name, line_, {}});
    map.entries.back().value.line = line_;
    return map.entries.back().value;
  }

  const JobReader& reader_;
  std::string_view rest_;
  int line_;
  std::vector<std::string> path_;
};

void set_line(YamlValue& value, int line) {
  value.line = line;
  for (YamlValue& item : value.items) set_line(item, line);
  for (YamlEntry& entry : value.entries) {
    entry.line = line;
    set_line(entry.value, line);
  }
}

YamlValue value_of(const JobReader& reader, const JobChange& change, int line) {
  const bool is_optional = change.path.starts_with("parameters.");
  if (change.value.empty() && !is_optional) {
    reader.refuse(line, "the value is empty, which only parameters may be. To leave out a field, write null");
  }
  YamlValue value;
  if (change.value.find_first_of("[{\"'") != 0) {
    value = plain_scalar(change.value);
  } else {
    try {
      value = parse_yaml(change.value, change.option);
    } catch (const Error&) {
      reader.refuse(line,
                    fmt::format("'{}' is not a value in YAML. Write a list as [a, b], a map as {{a: 1}}, and text "
                                "that begins with a bracket or a quote in quotes of its own: '\"[a]\"'",
                                printable(change.value)));
    }
  }
  set_line(value, line);
  return value;
}

}  // namespace

JobChange parse_job_change(const std::string& text) {
  const std::size_t mark = text.find('=');
  require(mark != std::string::npos && mark > 0, Failure::usage,
          "'{}' (--set) is not PATH=VALUE, such as parameters.epochs=1. Nothing was submitted.", printable(text));
  const std::string path = with_dots(text.substr(0, mark));
  require(path != "secrets" && !path.starts_with("secrets."), Failure::usage,
          "--set cannot change '{}', because all users of this machine can read a command line. Write the secret to "
          "the job file. Nothing was submitted.",
          printable(path));
  return {"--set " + path, path, text.substr(mark + 1)};
}

void change_job(const JobReader& reader, const std::vector<JobChange>& changes, YamlValue& root) {
  int line = 0;
  for (const JobChange& change : changes) {
    --line;
    YamlValue& changed = Walk(reader, change, line).end(root);
    changed = value_of(reader, change, line);
  }
}

}  // namespace lockstep
