// The exception that is being handled, as an Error.
#pragma once

#include <vector>

#include "base/error.hpp"
#include "base/text/stated_path.hpp"

namespace lockstep {

// Names the options of paths in later errors. State of the process, because a terminate handler reaches only globals.
// Call it before other threads can fail.
void set_stated_paths(std::vector<StatedPath> paths);

// Call it while an exception is being handled. OutputClosed: Failure::output_closed without a text.
Error current_error();

}  // namespace lockstep
