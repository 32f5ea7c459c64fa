// Appends to files that others read at the same time.
#pragma once

#include <string_view>

namespace lockstep {

// Appends all of `text` to an open file that nobody else writes to. On failure appends nothing and returns false, with
// errno set.
bool append_whole(int descriptor, std::string_view text);

}  // namespace lockstep
