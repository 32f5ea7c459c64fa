# `cmake --install BUILD --prefix DIR`: programs, Slurm scripts and a module file, for a site that serves many users; the
# libraries with their headers, for programs of one's own.
include(GNUInstallDirs)

# Programs are installed where they are defined (lockstep_program), job scripts in slurm/CMakeLists.txt. The module file
# names the prefix, so it is written at install time, when that is known for certain.
install(CODE "
  get_filename_component(prefix \"\${CMAKE_INSTALL_PREFIX}\" ABSOLUTE)  # it may be given relative to where cmake runs
  set(PROJECT_VERSION \"${PROJECT_VERSION}\")
  set(LOCKSTEP_PROGRAMS \"\${prefix}/${CMAKE_INSTALL_BINDIR}\")
  set(LOCKSTEP_SCRIPTS \"\${prefix}/${CMAKE_INSTALL_DATADIR}/lockstep/slurm\")
  configure_file(\"${PROJECT_SOURCE_DIR}/lib/cmake/modulefile.in\"
    \"\$ENV{DESTDIR}\${prefix}/${CMAKE_INSTALL_DATADIR}/modulefiles/lockstep/${PROJECT_VERSION}\" @ONLY)")

# Libraries, too, are installed where they are defined (lockstep_library). find_package(lockstep) finds them, and looks
# for what they link to as we do.
include(CMakePackageConfigHelpers)
set(LOCKSTEP_PACKAGE ${CMAKE_INSTALL_LIBDIR}/cmake/lockstep)
configure_package_config_file(${PROJECT_SOURCE_DIR}/lib/cmake/lockstepConfig.cmake.in
  ${PROJECT_BINARY_DIR}/lockstepConfig.cmake INSTALL_DESTINATION ${LOCKSTEP_PACKAGE}
  NO_SET_AND_CHECK_MACRO NO_CHECK_REQUIRED_COMPONENTS_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/lockstepConfigVersion.cmake COMPATIBILITY SameMinorVersion)
foreach(file LockstepLibraries FindCUDNN FindNCCL)
  list(APPEND files ${PROJECT_SOURCE_DIR}/lib/cmake/${file}.cmake)
endforeach()
install(FILES ${files} ${PROJECT_BINARY_DIR}/lockstepConfig.cmake ${PROJECT_BINARY_DIR}/lockstepConfigVersion.cmake
  DESTINATION ${LOCKSTEP_PACKAGE})
install(EXPORT lockstep NAMESPACE lockstep:: FILE lockstepTargets.cmake DESTINATION ${LOCKSTEP_PACKAGE})

# The pages that messages and --help name, and the example of search.md.
file(GLOB pages CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/apps/*.md)
install(FILES ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES ${pages} DESTINATION ${CMAKE_INSTALL_DOCDIR}/apps)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/tests/end_to_end/installed
  DESTINATION ${CMAKE_INSTALL_DOCDIR}/tests/end_to_end FILES_MATCHING PATTERN "*.cpp" PATTERN "CMakeLists.txt")
