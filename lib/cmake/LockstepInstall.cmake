# `cmake --install BUILD --prefix DIR`: programs, Slurm scripts and a module file, for a site that serves many users.
# Programs are installed where they are defined (lockstep_program). The module file names the prefix, so it is written at
# install time, when the prefix is known for certain.
include(GNUInstallDirs)
install(CODE "
  set(PROJECT_VERSION \"${PROJECT_VERSION}\")
  set(CMAKE_INSTALL_BINDIR \"${CMAKE_INSTALL_BINDIR}\")
  set(CMAKE_INSTALL_DATADIR \"${CMAKE_INSTALL_DATADIR}\")
  configure_file(\"${PROJECT_SOURCE_DIR}/lib/cmake/modulefile.in\"
    \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATADIR}/modulefiles/lockstep/${PROJECT_VERSION}\" @ONLY)")
