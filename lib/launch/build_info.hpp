// The commit and build configuration of this program, for summary.json. Every build reads the commit again.
#pragma once

#include <string>

namespace lockstep {

struct BuildInfo {
  std::string commit;  // "1a2b3c4d5e6f", with "-changed" if files differed from it; empty: built outside a repository
  std::string build;   // "Release, g++ 12.2.0"
};
BuildInfo build_info();

}  // namespace lockstep
