// Text of unknown origin as characters. Nothing here allocates or throws: a signal handler may run it.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace lockstep {

struct Utf8Character {
  std::size_t bytes = 0;         // that it takes up; of what is no character as many as could have begun one
  std::optional<char32_t> code;  // none: these bytes are not UTF-8
};

// The first character of `text`, which is not empty (RFC 3629: no surrogates, no overlong forms, nothing above
// U+10FFFF).
Utf8Character first_character(std::string_view text) noexcept;

}  // namespace lockstep
