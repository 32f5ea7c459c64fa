// YAML of unknown origin as a tree that knows its lines. It is bounded: in bytes, in depth, and in values, of which an
// alias counts for all that it stands for.
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
  std::string text;                // of a text: UTF-8 without NUL
  bool is_quoted = false;          // a text that cannot be meant as a number or a truth value
  std::vector<YamlValue> items;    // of a list
  std::vector<YamlEntry> entries;  // of a map, in the order of the file; no key comes twice

  const YamlEntry* find(std::string_view key) const;  // null: a map without it, or no map
};

struct YamlEntry {
  std::string key;
  int line = 0;
  YamlValue value;
};

// One document. Throws Error(usage) with `name` and the line where the text is no YAML, has tags of its own, says a key
// twice, or goes beyond a limit; no value of the text stands in the message.
YamlValue parse_yaml(const std::string& text, const std::string& name);

// "'job.yaml', line 12: "
std::string yaml_place(const std::string& name, int line);

}  // namespace lockstep
