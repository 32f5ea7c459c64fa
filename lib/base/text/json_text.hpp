// Conversion to and from JSON. Text of unknown origin (paths, class names, host names) may not be UTF-8, but JSON must
// be.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>

namespace lockstep {

// `value` as text on one line, with keys in alphabetical order. Each maximal invalid UTF-8 sequence becomes one U+FFFD;
// nlohmann's own dump() throws instead.
std::string json_text(const nlohmann::json& value);
// The same on several lines, indented by one space per level.
std::string json_lines(const nlohmann::json& value);

// Parses `text`. Defined here so that nlohmann's parser is compiled once. Throws nlohmann::json::parse_error.
nlohmann::json parse_json(std::string_view text);
// The same without exceptions. The result is_discarded() if `text` is not JSON, or is nested deeper than `deepest`
// levels.
nlohmann::json try_parse_json(std::string_view text, int deepest = 64);

// Writes `text` into `out` as a quoted JSON string, with the same replacements, and returns its length in bytes.
// Truncates text that does not fit, but never within a character, and always writes the closing quote. `out` has two
// bytes or more. Async-signal-safe.
std::size_t write_json_string(std::string_view text, std::span<char> out) noexcept;

}  // namespace lockstep
