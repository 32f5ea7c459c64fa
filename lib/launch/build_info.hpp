// What this program was built from and how, for summary.json: the commit is looked at whenever it is built.
#pragma once

#include <string>

namespace lockstep {

struct BuildInfo {
  std::string
      commit;         // "1a2b3c4d5e6f", with "-changed" where files differed from it; empty: built outside a repository
  std::string build;  // "Release, g++ 12.2.0"
};
BuildInfo build_info();

}  // namespace lockstep
