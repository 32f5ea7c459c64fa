// The exception that ends a program, in words for people.
#pragma once

#include <string>

namespace lockstep {

struct CurrentFailure {
  int code;  // that the program is to end with
  std::string sentence;
};

// Call inside a handler, or where an exception is being handled.
CurrentFailure describe_current_failure();

}  // namespace lockstep
