# `cpack -G DEB` in the build folder: a package for the Debian that it was built on. It goes to /opt/lockstep, because some
# programs have names that other packages use, too (report, predict): PATH or the module file says where they are.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME lockstep)
set(CPACK_PACKAGE_CONTACT "Lockstep's developers <lockstep@localhost>")  # the package format wants an address
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_PACKAGING_INSTALL_PREFIX /opt/lockstep)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)  # libraries, from the programs themselves
set(CPACK_DEBIAN_PACKAGE_DEPENDS openmpi-bin)
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "slurm-client, openssh-client")
include(CPack)
