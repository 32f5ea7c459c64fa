// JSON from values of unknown origin: paths, names of classes and of hosts need not be UTF-8, JSON must be.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>

namespace lockstep {

// The text of `value` on one line, keys in alphabetical order. Bytes that are not UTF-8 become U+FFFD, one for as many
// as could have begun a character; nlohmann's own dump() throws there.
std::string json_text(const nlohmann::json& value);
// The same on several lines, indented by one space a level.
std::string json_lines(const nlohmann::json& value);

// The value that `text` holds. Here, so that nlohmann's parser is compiled once. Throws nlohmann::json::parse_error.
nlohmann::json parse_json(std::string_view text);
// The same without exceptions: a value of no type, is_discarded(), where `text` is no JSON or nested deeper than
// `deepest` lists and objects.
nlohmann::json try_parse_json(std::string_view text, int deepest = 64);

// Writes `text` into `out` as a JSON string, with its quotes and with the same replacements, and returns how many bytes
// that took. What does not fit is left out, whole characters and the closing quote never cut: `out` has two bytes or
// more. Async-signal-safe.
std::size_t write_json_string(std::string_view text, std::span<char> out) noexcept;

}  // namespace lockstep
