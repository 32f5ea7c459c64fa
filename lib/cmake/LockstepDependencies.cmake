# Everything Lockstep links to, found once, as imported targets. What the libraries need stands in LockstepLibraries.cmake,
# which also find_package(lockstep) reads.
set(CMAKE_FIND_PACKAGE_NAME lockstep)  # for find_dependency, in whose words something is missing
set(lockstep_FIND_REQUIRED ON)
include(LockstepLibraries)
if(DEFINED lockstep_FOUND AND NOT lockstep_FOUND)
  message(FATAL_ERROR "${lockstep_NOT_FOUND_MESSAGE}")
endif()
unset(CMAKE_FIND_PACKAGE_NAME)
unset(lockstep_FIND_REQUIRED)

find_library(LOCKSTEP_ONNX_PROTO onnx_proto REQUIRED)  # of Debian's libonnx-dev, whose own file for CMake wants more

if(LOCKSTEP_TESTS)
  find_package(GTest REQUIRED)
endif()
if(LOCKSTEP_BENCH)
  find_package(benchmark REQUIRED)
endif()
