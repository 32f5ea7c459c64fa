# ccache compiles what it has not compiled before, where it is installed and nobody has chosen otherwise.
find_program(LOCKSTEP_CCACHE ccache DOC "Compiler cache; empty: none")
if(LOCKSTEP_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # What it must overlook to take sources with precompiled headers; it compares these by their content.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${LOCKSTEP_CCACHE})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${LOCKSTEP_CCACHE})
  message(STATUS "Compiler cache: ${LOCKSTEP_CCACHE}")
endif()
