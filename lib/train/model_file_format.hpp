// What writing and reading a model file have in common.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/hdf5.hpp"

namespace lockstep::model_file {

inline constexpr std::int32_t format = 1;

// Keeps the file in memory. With HDF5 1.8's form of attributes, which may be larger than 64 KiB (1000 class names are).
inline Hid<H5Pclose> memory_access() {
  constexpr std::size_t growth_bytes = 1 << 20;
  constexpr hbool_t never_to_disk = 0;
  Hid<H5Pclose> access(check_h5(H5Pcreate(H5P_FILE_ACCESS), "make an access list"));
  check_h5(H5Pset_fapl_core(access, growth_bytes, never_to_disk), "keep a file in memory");
  check_h5(H5Pset_libver_bounds(access, H5F_LIBVER_V18, H5F_LIBVER_LATEST), "choose a file format");
  return access;
}

// UTF-8 of a fixed length, at least one byte, filled up with zeros.
inline Hid<H5Tclose> text_type(std::size_t bytes) {
  Hid<H5Tclose> type(check_h5(H5Tcopy(H5T_C_S1), "make a text type"));
  check_h5(H5Tset_size(type, bytes == 0 ? 1 : bytes), "make a text type");
  check_h5(H5Tset_strpad(type, H5T_STR_NULLPAD), "make a text type");
  check_h5(H5Tset_cset(type, H5T_CSET_UTF8), "make a text type");
  return type;
}

}  // namespace lockstep::model_file
