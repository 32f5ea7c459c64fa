#include "base/text/json_text.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <nlohmann/json.hpp>

#include "base/text/utf8.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::json;

std::string dumped(const Json& value, int indent) {
  // careful-json: replaces invalid UTF-8
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

// One character of a JSON string: an escape sequence of at most six bytes, or a view of the text.
class Escaped {
 public:
  Escaped(std::string_view text, const Utf8Character& character) noexcept : view_(text.substr(0, character.bytes)) {
    constexpr std::string_view replacement = "\xEF\xBF\xBD";  // U+FFFD
    constexpr std::string_view named = "\b\f\n\r\t\"\\";
    constexpr std::string_view names = "bfnrt\"\\";
    constexpr std::string_view digits = "0123456789abcdef";
    if (!character.code) {
      view_ = replacement;
      return;
    }
    const char32_t code = *character.code;
    const std::size_t name = code < 0x80 ? named.find(static_cast<char>(code)) : std::string_view::npos;
    if (name != std::string_view::npos) {
      own_ = {'\\', names[name]};
      view_ = {own_.data(), 2};
    } else if (code < 0x20) {
      own_ = {'\\', 'u', '0', '0', digits[code >> 4U], digits[code & 0xFU]};
      view_ = {own_.data(), own_.size()};
    }
  }
  Escaped(const Escaped&) = delete;
  Escaped& operator=(const Escaped&) = delete;

  std::string_view view() const noexcept { return view_; }

 private:
  std::string_view view_;
  std::array<char, 6> own_{};
};

}  // namespace

Json parse_json(std::string_view text) { return Json::parse(text); }

Json try_parse_json(std::string_view text, int deepest) {
  bool is_shallow = true;
  const auto look = [&](int depth, Json::parse_event_t, Json&) {
    is_shallow = is_shallow && depth <= deepest;
    return is_shallow;
  };
  constexpr bool no_exceptions = false;
  Json value = Json::parse(text, look, no_exceptions);
  return is_shallow ? value : Json(Json::value_t::discarded);
}

std::string json_text(const Json& value) { return dumped(value, -1); }

std::string json_lines(const Json& value) { return dumped(value, 1); }

std::size_t write_json_string(std::string_view text, std::span<char> out) noexcept {
  assert(out.size() >= 2);
  std::size_t length = 0;
  out[length++] = '"';
  while (!text.empty()) {
    const Utf8Character character = first_character(text);
    const Escaped escaped(text, character);
    if (length + escaped.view().size() + 1 > out.size()) break;
    std::ranges::copy(escaped.view(), out.begin() + static_cast<std::ptrdiff_t>(length));
    length += escaped.view().size();
    text.remove_prefix(character.bytes);
  }
  out[length++] = '"';
  return length;
}

}  // namespace lockstep
