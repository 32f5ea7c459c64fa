# `cmake --install BUILD --prefix DIR`: programs, Slurm scripts and a module file, for a site that serves many users.
# Programs are installed where they are defined (lockstep_program), job scripts in slurm/CMakeLists.txt. The module file
# names the prefix, so it is written at install time, when that is known for certain.
include(GNUInstallDirs)
install(CODE "
  get_filename_component(prefix \"\${CMAKE_INSTALL_PREFIX}\" ABSOLUTE)  # it may be given relative to where cmake runs
  set(PROJECT_VERSION \"${PROJECT_VERSION}\")
  set(LOCKSTEP_PROGRAMS \"\${prefix}/${CMAKE_INSTALL_BINDIR}\")
  set(LOCKSTEP_SCRIPTS \"\${prefix}/${CMAKE_INSTALL_DATADIR}/lockstep/slurm\")
  configure_file(\"${PROJECT_SOURCE_DIR}/lib/cmake/modulefile.in\"
    \"\$ENV{DESTDIR}\${prefix}/${CMAKE_INSTALL_DATADIR}/modulefiles/lockstep/${PROJECT_VERSION}\" @ONLY)")
