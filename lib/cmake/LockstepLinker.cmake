# lld links in a fifth of GNU ld's time. Used where it is installed and takes the compiler's output.
include(CheckLinkerFlag)
check_linker_flag(CXX -fuse-ld=lld LOCKSTEP_LLD)
if(LOCKSTEP_LLD)
  add_link_options(-fuse-ld=lld)
endif()
