// Picture formats that Lockstep does not read, so that messages can name them.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace lockstep {

// Recognizes the format by the first bytes: "is a WebP file, which Lockstep does not read (convert it with:
// mogrify -format png *.webp)". Empty if the format is unknown. The message completes the sentence "it ...".
std::string unsupported_format_message(std::span<const std::byte> file);

}  // namespace lockstep
