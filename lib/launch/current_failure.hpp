// Describes the exception that ends a program.
#pragma once

#include <string>

namespace lockstep {

struct CurrentFailure {
  int code;  // the program's exit code
  std::string sentence;
};

// Call it while an exception is being handled.
CurrentFailure describe_current_failure();

}  // namespace lockstep
