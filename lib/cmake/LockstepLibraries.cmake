# What the libraries link to, as imported targets: of the build, and of a program elsewhere that finds the installed ones.
include(CMakeFindDependencyMacro)
find_dependency(Threads)

set(MPI_CXX_SKIP_MPICXX ON)  # the C API only
find_dependency(MPI COMPONENTS CXX)

find_dependency(HDF5 COMPONENTS C)
find_dependency(ZLIB)
find_dependency(JPEG)
find_dependency(PNG)
find_dependency(fmt)
find_dependency(CLI11)
find_dependency(nlohmann_json)

find_dependency(PkgConfig)
foreach(library exif=libexif matio=matio protobuf=protobuf sodium=libsodium xxhash=libxxhash yaml_cpp=yaml-cpp)
  string(REPLACE "=" ";" library ${library})
  list(GET library 0 target)
  list(GET library 1 module)
  pkg_check_modules(${target} QUIET IMPORTED_TARGET ${module})
  if(NOT ${target}_FOUND)
    set(lockstep_FOUND OFF)
    set(lockstep_NOT_FOUND_MESSAGE "pkg-config does not find ${module}. Install its development files.")
    return()
  endif()
endforeach()

if(LOCKSTEP_HAS_CUDA)
  find_dependency(CUDAToolkit 12.4)
  find_dependency(CUDNN 9.8)
  find_dependency(NCCL 2.20)
endif()
