# Everything Lockstep links to, found once, as imported targets.
find_package(Threads REQUIRED)

set(MPI_CXX_SKIP_MPICXX ON)  # the C API only
find_package(MPI REQUIRED COMPONENTS CXX)

find_package(HDF5 REQUIRED COMPONENTS C)
find_package(ZLIB REQUIRED)
find_package(JPEG REQUIRED)
find_package(PNG REQUIRED)
find_package(fmt REQUIRED)
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)

find_package(PkgConfig REQUIRED)
pkg_check_modules(exif REQUIRED IMPORTED_TARGET libexif)
pkg_check_modules(matio REQUIRED IMPORTED_TARGET matio)
pkg_check_modules(protobuf REQUIRED IMPORTED_TARGET protobuf)
pkg_check_modules(sodium REQUIRED IMPORTED_TARGET libsodium)
pkg_check_modules(xxhash REQUIRED IMPORTED_TARGET libxxhash)
pkg_check_modules(yaml_cpp REQUIRED IMPORTED_TARGET yaml-cpp)

find_library(LOCKSTEP_ONNX_PROTO onnx_proto REQUIRED)  # of Debian's libonnx-dev, whose own file for CMake wants more

if(LOCKSTEP_TESTS)
  find_package(GTest REQUIRED)
endif()
if(LOCKSTEP_BENCH)
  find_package(benchmark REQUIRED)
endif()
