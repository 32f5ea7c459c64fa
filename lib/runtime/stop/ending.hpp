// The result of an orderly end of a program, the same on all ranks.
#pragma once

#include <string>
#include <vector>

namespace lockstep {

struct Ending {
  int code = 0;                             // see base/error.hpp
  std::string sentence;                     // the reason, for the exit report; empty: say nothing
  std::vector<std::string> bad_hosts = {};  // nodes that the next attempt should avoid
  int rank = 0;                             // the rank that reports, whose sentence and nodes are used
};

}  // namespace lockstep
