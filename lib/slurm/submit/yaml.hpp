// Untrusted YAML as a tree with line numbers. Bytes, depth and values are limited. An alias counts as many values as it
// stands for.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

namespace yaml_limits {
inline constexpr std::size_t bytes = std::size_t{1} << 18;
inline constexpr int depth = 16;
inline constexpr std::int64_t values = 10'000;
}  // namespace yaml_limits

struct YamlEntry;

struct YamlValue {
  enum class Kind : std::uint8_t { nothing, text, list, map };

  Kind kind = Kind::nothing;
  int line = 0;                    // in the file, from 1
  std::string text;                // of a text; UTF-8 without NUL
  bool is_quoted = false;          // so it is neither a number nor a truth value
  std::vector<YamlValue> items;    // of a list
  std::vector<YamlEntry> entries;  // of a map, in file order; keys are unique

  const YamlEntry* find(std::string_view key) const;  // null if there is no such key, or this is not a map
};

struct YamlEntry {
  std::string key;
  int line = 0;
  YamlValue value;
};

// The value of a key of a map. Null if the key is missing, or its value is null.
const YamlValue* find_value(const YamlValue& map, std::string_view key);

// How messages about a kind of file call it, and what they say at their end.
struct YamlKind {
  std::string_view files = "job files";
  std::string_view outcome = "Nothing was submitted.";
};

// Parses one document. Throws Error(usage) with `name` and the line if the text is not YAML, has custom tags, repeats a
// key, or exceeds a limit. Messages contain no value of the text.
YamlValue parse_yaml(const std::string& text, const std::string& name, const YamlKind& kind = {});

// The value that `text` has as a plain scalar of a file, without a line. Throws Error(usage) if it is not UTF-8.
YamlValue plain_scalar(const std::string& text, const YamlKind& kind = {});

// "'job.yaml', line 12: "; without a line (0): "'job.yaml': "
std::string yaml_place(const std::string& name, int line);

}  // namespace lockstep
