// Files that grow while others read them.
#pragma once

#include <string_view>

namespace lockstep {

// All of `text` at the end of an open file that nobody else writes to, or nothing of it: false, with errno.
bool append_whole(int descriptor, std::string_view text);

}  // namespace lockstep
