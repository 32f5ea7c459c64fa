// How a program ends in good order, all ranks alike.
#pragma once

#include <string>
#include <vector>

namespace lockstep {

struct Ending {
  int code = 0;                             // see base/error.hpp
  std::string sentence;                     // why, for failure.json; rank 0's counts
  std::vector<std::string> bad_hosts = {};  // nodes that another attempt had better avoid; rank 0's count
};

}  // namespace lockstep
