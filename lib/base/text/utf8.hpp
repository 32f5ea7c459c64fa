// Decoding of UTF-8 text of unknown origin. Nothing here allocates or throws, so a signal handler may use it.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace lockstep {

struct Utf8Character {
  std::size_t bytes = 0;         // its length; for invalid text, that of the maximal invalid sequence
  std::optional<char32_t> code;  // none if these bytes are not UTF-8
};

// The first character of `text`, which must not be empty (RFC 3629: no surrogates, no overlong forms, nothing above
// U+10FFFF).
Utf8Character first_character(std::string_view text) noexcept;

}  // namespace lockstep
