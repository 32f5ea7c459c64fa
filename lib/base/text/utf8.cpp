#include "base/text/utf8.hpp"

#include <cassert>

namespace lockstep {
namespace {

// The continuation after a first byte: the number of bytes, and the range of the first of them (RFC 3629, section 4).
struct Continuation {
  std::size_t bytes;
  unsigned least;
  unsigned most;
};

std::optional<Continuation> continuation_of(unsigned first) noexcept {
  if (first >= 0xC2 && first <= 0xDF) return Continuation{1, 0x80, 0xBF};
  if (first == 0xE0) return Continuation{2, 0xA0, 0xBF};
  if (first == 0xED) return Continuation{2, 0x80, 0x9F};
  if (first >= 0xE1 && first <= 0xEF) return Continuation{2, 0x80, 0xBF};
  if (first == 0xF0) return Continuation{3, 0x90, 0xBF};
  if (first >= 0xF1 && first <= 0xF3) return Continuation{3, 0x80, 0xBF};
  if (first == 0xF4) return Continuation{3, 0x80, 0x8F};
  return std::nullopt;
}

}  // namespace

Utf8Character first_character(std::string_view text) noexcept {
  assert(!text.empty());
  const unsigned first = static_cast<unsigned char>(text.front());
  if (first < 0x80) return {1, static_cast<char32_t>(first)};
  const std::optional<Continuation> rest = continuation_of(first);
  if (!rest) return {1, std::nullopt};
  char32_t code = first & (0x3FU >> rest->bytes);
  for (std::size_t at = 1; at <= rest->bytes; ++at) {
    if (at == text.size()) return {at, std::nullopt};
    const unsigned next = static_cast<unsigned char>(text[at]);
    if (next < (at == 1 ? rest->least : 0x80U) || next > (at == 1 ? rest->most : 0xBFU)) return {at, std::nullopt};
    code = code << 6U | (next & 0x3FU);
  }
  return {rest->bytes + 1, code};
}

}  // namespace lockstep
