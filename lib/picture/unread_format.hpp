// Formats of pictures that Lockstep does not read, so that a message can name them.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace lockstep {

// "is a WebP file, which is not read (to convert: mogrify -format png *.webp)", by the file's first bytes; empty where
// they are none of a known format. The words complete the sentence "it ...".
std::string unsupported_format_message(std::span<const std::byte> file);

}  // namespace lockstep
