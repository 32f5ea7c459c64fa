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
# Everybody may read the package's folders, whatever the umask of who packs it.
file(WRITE ${PROJECT_BINARY_DIR}/folder_permissions.cmake [[
file(CHMOD_RECURSE "${CPACK_TEMPORARY_DIRECTORY}/" DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ
  GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
]])
# Without these, CPack makes a package that names no libraries.
file(WRITE ${PROJECT_BINARY_DIR}/tools_for_package.cmake [[
find_program(dpkg_shlibdeps dpkg-shlibdeps)
find_program(file file)
if(NOT dpkg_shlibdeps OR NOT file)
  message(FATAL_ERROR "dpkg-shlibdeps or file is missing. Install with: apt-get install dpkg-dev file")
endif()
]])
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_BINARY_DIR}/tools_for_package.cmake ${PROJECT_BINARY_DIR}/folder_permissions.cmake)
include(CPack)
