// Describes the exception that ends a program.
#pragma once

#include <string>
#include <vector>

#include "launch/path_options.hpp"

namespace lockstep {

struct CurrentFailure {
  int code;              // the program's exit code
  std::string sentence;  // empty: say nothing, because nobody reads the program's output
};

// Names the options of paths in later failures. State of the process, because a terminate handler reaches only globals.
// Call it before other threads can fail.
void set_stated_paths(std::vector<StatedPath> paths);

// Call it while an exception is being handled.
CurrentFailure describe_current_failure();

}  // namespace lockstep
