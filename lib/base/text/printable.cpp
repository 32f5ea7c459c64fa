#include "base/text/printable.hpp"

#include <fmt/format.h>

#include <iterator>

#include "base/text/utf8.hpp"

namespace lockstep {
namespace {

// C0, DEL and C1.
bool is_control(char32_t code) { return code < 0x20 || (code >= 0x7F && code <= 0x9F); }

// Marks, embeddings, overrides and isolates of the bidirectional algorithm (UAX #9), and both line separators.
bool misleads(char32_t code) {
  return code == 0x061C || code == 0x200E || code == 0x200F || (code >= 0x2028 && code <= 0x202E) ||
         (code >= 0x2066 && code <= 0x2069);
}

template <typename Stays>
std::string with_numbers(std::string_view text, std::string_view backslash, const Stays& stays) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const auto [bytes, code] = first_character(text);
    const std::string_view taken = text.substr(0, bytes);
    text.remove_prefix(bytes);
    if (taken == "\\") {
      result += backslash;
    } else if (code && (stays(*code) || (!is_control(*code) && !misleads(*code)))) {
      result += taken;
    } else if (code && *code >= 0x80) {
      fmt::format_to(std::back_inserter(result), "\\u{:04x}", static_cast<unsigned>(*code));
    } else if (code) {
      fmt::format_to(std::back_inserter(result), "\\x{:02x}", static_cast<unsigned>(*code));
    } else {
      for (const char byte : taken) {
        fmt::format_to(std::back_inserter(result), "\\x{:02x}", static_cast<unsigned char>(byte));
      }
    }
  }
  return result;
}

}  // namespace

std::string printable(std::string_view text) {
  return with_numbers(text, "\\", [](char32_t) { return false; });
}

std::string printable_name(std::string_view text) {
  return with_numbers(text, "\\\\", [](char32_t) { return false; });
}

std::string printable_lines(std::string_view text) {
  return with_numbers(text, "\\", [](char32_t code) { return code == '\n' || code == '\t'; });
}

}  // namespace lockstep
