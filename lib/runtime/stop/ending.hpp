// The result of an orderly end of a program, the same on all ranks.
#pragma once

#include <string>
#include <vector>

namespace lockstep {

struct Ending {
  int code = 0;                             // see base/error.hpp
  std::string sentence;                     // the reason, for failure.json; rank 0's is used
  std::vector<std::string> bad_hosts = {};  // nodes that the next attempt should avoid; rank 0's are used
};

}  // namespace lockstep
