// How a program ends in good order, all ranks alike.
#pragma once

#include <string>

namespace lockstep {

struct Ending {
  int code = 0;          // see base/error.hpp
  std::string sentence;  // why, for failure.json; rank 0's counts
};

}  // namespace lockstep
