# Helper functions that state each target in a few words.

# Warnings and sanitizers that every target of ours gets.
add_library(lockstep_flags INTERFACE)
# -Wrestrict: GCC 12 sees overlap in "text" + std::string where there is none (its bug 105651).
target_compile_options(lockstep_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wshadow -Wpedantic -Wno-restrict>
  # Loop bodies use what the standard library declares constexpr. No kernel may need more registers than there are.
  $<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr>
  "$<$<COMPILE_LANGUAGE:CUDA>:SHELL:-Xptxas -warn-spills,-warn-lmem-usage>")
if(LOCKSTEP_WERROR)
  target_compile_options(lockstep_flags INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-Werror> "$<$<COMPILE_LANGUAGE:CUDA>:SHELL:-Werror all-warnings>")
endif()
if(LOCKSTEP_SANITIZE)
  # -Wmaybe-uninitialized: with a sanitizer's checks GCC 12 sees such members in std::regex (its bug 105562).
  target_compile_options(lockstep_flags INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${LOCKSTEP_SANITIZE} -fno-omit-frame-pointer -Wno-maybe-uninitialized>)
  target_link_options(lockstep_flags INTERFACE -fsanitize=${LOCKSTEP_SANITIZE})
endif()

# The standard library and fmt, parsed once and not by each source: NAME is for lockstep_precompile(). Sources still
# include what they need, and compile without this (CMAKE_DISABLE_PRECOMPILE_HEADERS).
#
#   lockstep_precompiled(lockstep_precompiled_test OPTIONS -O0 HEADERS <gtest/gtest.h> LINK GTest::gtest)
function(lockstep_precompiled name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "OPTIONS;HEADERS;LINK")
  set(source ${PROJECT_BINARY_DIR}/precompiled/${name}.cpp)
  file(CONFIGURE OUTPUT ${source} CONTENT "")
  add_library(${name} OBJECT ${source})
  target_link_libraries(${name} PRIVATE fmt::fmt ${arg_LINK} lockstep_flags)
  target_compile_options(${name} PRIVATE ${arg_OPTIONS})
  target_precompile_headers(${name} PRIVATE <fmt/format.h> <fmt/ranges.h> <algorithm> <array> <atomic> <charconv>
    <chrono> <condition_variable> <deque> <filesystem> <functional> <iterator> <list> <map> <memory> <mutex> <numeric>
    <optional> <random> <ranges> <set> <span> <sstream> <string> <string_view> <thread> <utility> <variant> <vector>
    ${arg_HEADERS})
endfunction()

# The compiler reads a precompiled header only where the source's options are those that the header was made with, the
# level of optimisation included: with another one GCC 12 may crash.
function(lockstep_precompile target from)
  target_precompile_headers(${target} REUSE_FROM ${from})
endfunction()
# Sources with options of their own.
function(lockstep_options target options)
  set_source_files_properties(${ARGN} TARGET_DIRECTORY ${target} PROPERTIES
    COMPILE_OPTIONS "${options}" SKIP_PRECOMPILE_HEADERS ON)
endfunction()

# What only reads options, files and words is optimised a little: more would take a third of the build's time. GCC gets
# 512 MiB before it looks for memory to use again, which takes it a tenth of its time. The objects stay the same.
# With a sanitizer's checks, which double what there is to optimise, they are not optimised.
set(LOCKSTEP_NOT $<$<CONFIG:Release>:-O0>)
set(LOCKSTEP_LITTLE $<$<CONFIG:Release>:-O1>)
if(LOCKSTEP_SANITIZE)
  set(LOCKSTEP_NOT -O0)
  set(LOCKSTEP_LITTLE -O0)
endif()
list(APPEND LOCKSTEP_LITTLE $<$<CXX_COMPILER_ID:GNU>:--param=ggc-min-heapsize=524288>)
lockstep_precompiled(lockstep_precompiled)
lockstep_precompiled(lockstep_precompiled_little OPTIONS ${LOCKSTEP_LITTLE} HEADERS <nlohmann/json.hpp>
  LINK nlohmann_json::nlohmann_json)

# Each source with CLI11's header compiles its validators, so others do not get it.
lockstep_precompiled(lockstep_precompiled_options OPTIONS ${LOCKSTEP_LITTLE} HEADERS <nlohmann/json.hpp> <CLI/App.hpp>
  LINK nlohmann_json::nlohmann_json CLI11::CLI11)

# One folder of lib/ as a library, lockstep::<folder>.
#
#   lockstep_library(comm COMPUTES SOURCES a.cpp HEADERS a.hpp LINK lockstep::device MPI::MPI_CXX)
#
# COMPUTES: it has loops over samples, pictures or gradients, and is optimised as far as the compiler can. DECLARES: its
# sources declare options. JOINED: its sources are compiled eight at a time, because each would instantiate the same
# large templates; so they share one unnamed namespace. LINK is public: a folder's headers show the types of the folders
# above it. CUDA_SOURCES and CUDA_HEADERS: of a build with CUDA alone; CPU_ONLY_SOURCES: of one without.
function(lockstep_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "COMPUTES;DECLARES;JOINED" "" "LINK")
  add_library(lockstep_${name} STATIC)
  target_link_libraries(lockstep_${name} PUBLIC ${arg_LINK} PRIVATE $<BUILD_INTERFACE:lockstep_flags>)
  if(arg_COMPUTES)
    lockstep_precompile(lockstep_${name} lockstep_precompiled)
  else()
    target_compile_options(lockstep_${name} PRIVATE ${LOCKSTEP_LITTLE})
    if(arg_DECLARES)
      lockstep_precompile(lockstep_${name} lockstep_precompiled_options)
    else()
      lockstep_precompile(lockstep_${name} lockstep_precompiled_little)
    endif()
  endif()
  if(arg_JOINED)
    set_target_properties(lockstep_${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
  endif()
  target_compile_features(lockstep_${name} PUBLIC cxx_std_20)
  if(LOCKSTEP_SANITIZE)  # also of what others link to it
    target_link_options(lockstep_${name} INTERFACE -fsanitize=${LOCKSTEP_SANITIZE})
  endif()
  lockstep_room(${name} ${arg_UNPARSED_ARGUMENTS})
  add_library(lockstep::${name} ALIAS lockstep_${name})
  set_target_properties(lockstep_${name} PROPERTIES EXPORT_NAME ${name})
  install(TARGETS lockstep_${name} EXPORT lockstep FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/lockstep)
endfunction()

# A folder within such a folder: its files are part of that library.
#
#   lockstep_room(device SOURCES a.cpp HEADERS a.hpp)
function(lockstep_room library)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;HEADERS;CUDA_SOURCES;CUDA_HEADERS;CPU_ONLY_SOURCES")
  if(LOCKSTEP_HAS_CUDA)
    list(APPEND arg_SOURCES ${arg_CUDA_SOURCES})
    list(APPEND arg_HEADERS ${arg_CUDA_HEADERS})
  else()
    list(APPEND arg_SOURCES ${arg_CPU_ONLY_SOURCES})
  endif()
  target_sources(lockstep_${library} PRIVATE ${arg_SOURCES}
    PUBLIC FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}/lib FILES ${arg_HEADERS})
endfunction()

# A program from one file, installed into bin/, with the manual page and the completion in bash that it writes itself.
# Where it does not start there are none of them, as of a build for other machines.
function(lockstep_program name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LINK")
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_LINK} lockstep_flags)
  target_compile_options(${name} PRIVATE ${LOCKSTEP_LITTLE})
  lockstep_precompile(${name} lockstep_precompiled_options)
  set_target_properties(${name} PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
  install(TARGETS ${name})
  set(pages ${CMAKE_CURRENT_BINARY_DIR}/pages)
  install(CODE "
    execute_process(COMMAND \"$<TARGET_FILE:${name}>\" --write-pages \"${pages}\" RESULT_VARIABLE result)
    if(NOT result EQUAL 0)
      message(WARNING \"${name} does not start here: no manual page and no completion of it (\${result}).\")
    endif()")
  install(FILES ${pages}/man/${name}.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 OPTIONAL)
  install(FILES ${pages}/completions/${name} DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions OPTIONAL)
endfunction()

# Tests in GoogleTest, of the source <name>.cpp, and their CTest entries.
#
#   lockstep_test(shard_test LINK lockstep::dataset [RANKS 1 3] [LONG_RANKS 2 4] [LABELS unit] [TIMEOUT 120]
#     [NEEDS train_cifar])
#   lockstep_test(allocation_test OWN_PROGRAM SOURCES allocation_counter.cpp allocation_test.cpp LINK lockstep::models)
#
# The sources of a folder below tests/ are one program, for example `bin/dataset_tests shard_test`. They are compiled
# sixteen at a time, which takes less than half of the time, so each has a namespace of its name. OWN_PROGRAM:
# `bin/allocation_test`, because it has a main function, replaces functions of libraries, or other programs start it.
#
# Without RANKS: one process, label unit. With RANKS: one entry for each number of ranks under mpirun, label mpi, and
# the program's main comes from tests/support/mpi_main.cpp (bin/dataset_mpi_tests). LONG_RANKS: further numbers, label
# long. NEEDS: programs that it starts. Exit code 77 counts as skipped.
function(lockstep_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "OWN_PROGRAM" "TIMEOUT" "SOURCES;LINK;RANKS;LONG_RANKS;LABELS;NEEDS")
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  cmake_path(RELATIVE_PATH CMAKE_CURRENT_SOURCE_DIR BASE_DIRECTORY ${PROJECT_SOURCE_DIR}/tests OUTPUT_VARIABLE folder)
  string(REGEX REPLACE "/.*" "" folder ${folder})
  set(main unit)
  set(program ${folder}_tests)
  if(arg_RANKS)
    set(main mpi)
    set(program ${folder}_mpi_tests)
  endif()
  set(source ${name})
  if(NOT arg_SOURCES)
    set(arg_SOURCES ${name}.cpp)
  elseif(NOT arg_OWN_PROGRAM)
    message(FATAL_ERROR "${name}: only a program of its own has SOURCES.")
  endif()
  if(arg_OWN_PROGRAM)
    set(program ${name})
    set(source "")
  endif()
  if(NOT TARGET ${program})
    add_executable(${program})
    target_link_libraries(${program} PRIVATE lockstep_${main}_main lockstep_flags)
    lockstep_precompile(${program} ${LOCKSTEP_TEST_PRECOMPILED})
    set_target_properties(${program} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 16)
  endif()
  target_sources(${program} PRIVATE ${arg_SOURCES})
  target_link_libraries(${program} PRIVATE ${arg_LINK})
  if(arg_NEEDS)
    add_dependencies(${program} ${arg_NEEDS})
  endif()
  if(NOT arg_RANKS)
    lockstep_ctest(${name} COMMAND ${program} ${source} TIMEOUT ${arg_TIMEOUT} LABELS unit ${arg_LABELS})
    return()
  endif()
  foreach(ranks IN LISTS arg_RANKS arg_LONG_RANKS)
    set(processors 2)  # more than that would wait until all other tests are done
    if(ranks EQUAL 1)
      set(processors 1)
    endif()
    set(labels mpi ${arg_LABELS})
    if(ranks IN_LIST arg_LONG_RANKS)
      list(APPEND labels long)
    endif()
    lockstep_ctest(${name}_${ranks}_ranks TIMEOUT ${arg_TIMEOUT} LABELS ${labels} PROCESSORS ${processors}
      COMMAND ${LOCKSTEP_MPIRUN} -n ${ranks} $<TARGET_FILE:${program}> ${source})
  endforeach()
endfunction()

# One CTest entry with this project's conventions: 77 is skipped, a timeout, labels, mpirun as root allowed, no kernel
# plans in the user's folders. It also has the labels in LOCKSTEP_TEST_LABELS. PROCESSORS: of the six that tests/run.sh has CTest count with; 1 unless stated. Instead
# of COMMAND, SCRIPT names a .py or .sh file of this folder, and its arguments.
function(lockstep_ctest name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "TIMEOUT;PROCESSORS" "COMMAND;SCRIPT;LABELS;ENVIRONMENT")
  if(NOT arg_PROCESSORS)
    set(arg_PROCESSORS 1)
  endif()
  if(arg_SCRIPT)
    list(TRANSFORM arg_SCRIPT PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/ AT 0)
    set(arg_COMMAND ${arg_SCRIPT})
    if(arg_SCRIPT MATCHES "^[^;]*\\.py(;|$)")
      list(PREPEND arg_COMMAND ${Python3_EXECUTABLE})
    endif()
  endif()
  if(LOCKSTEP_SANITIZE AND arg_TIMEOUT)
    math(EXPR arg_TIMEOUT "8 * ${arg_TIMEOUT}")
  endif()
  add_test(NAME ${name} COMMAND ${arg_COMMAND})
  set_tests_properties(${name} PROPERTIES
    SKIP_RETURN_CODE 77 TIMEOUT ${arg_TIMEOUT} LABELS "${arg_LABELS};${LOCKSTEP_TEST_LABELS}" PROCESSORS ${arg_PROCESSORS}
    ENVIRONMENT "OMPI_ALLOW_RUN_AS_ROOT=1;OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1;OMPI_MCA_mpi_yield_when_idle=1;XDG_CACHE_HOME=${PROJECT_BINARY_DIR}/cache;${arg_ENVIRONMENT}")
endfunction()

# A long run of a test that reads damaged forms of files: 100,000 instead of a few hundred or thousand. They are in
# memory, because a disk would take more time than the test.
#
#   lockstep_damage(exif_damage picture_tests exif_damage_test)
function(lockstep_damage name)
  lockstep_ctest(${name}_100000 LABELS long TIMEOUT 1800 ENVIRONMENT LOCKSTEP_MUTATIONS=100000 TMPDIR=/dev/shm
    COMMAND ${ARGN})
endfunction()

# More ranks than cores, not tied to cores: what tests and small machines need.
set(LOCKSTEP_MPIRUN mpirun --oversubscribe --bind-to none)
