# Writes OUTPUT, the source of launch/build_info.hpp, if it would change: cmake -D OUTPUT=... -D ROOT=... -D BUILD=... -P
find_program(git git)
set(commit "")
if(git AND EXISTS ${ROOT}/.git)
  execute_process(COMMAND ${git} -C ${ROOT} describe --always --abbrev=12 --exclude=* --dirty=-changed
    OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
file(CONFIGURE OUTPUT ${OUTPUT} @ONLY CONTENT [[
#include "launch/build_info.hpp"

namespace lockstep {

BuildInfo build_info() { return {"@commit@", "@BUILD@"}; }

}  // namespace lockstep
]])
