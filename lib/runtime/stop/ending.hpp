// How a program ends in good order, all ranks alike.
#pragma once

#include <string>

namespace lockstep {

struct Ending {
  int code = 0;          // see base/error.hpp
  std::string sentence;  // why, for failure.json; rank 0's counts
};

// What all ranks throw together to end so from within a constructor; run() takes it.
struct Stopped {
  Ending ending;
};

}  // namespace lockstep
