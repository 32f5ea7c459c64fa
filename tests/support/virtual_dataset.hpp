// A dataset whose shape HDF5 looks up in another file, as a hostile file may have one.
#pragma once

#include "base/io/hdf5.hpp"

namespace lockstep {

// The other file need not exist.
inline void create_virtual_dataset(hid_t file, const char* name, hid_t type) {
  const hsize_t least = 1;
  const hsize_t most = H5S_UNLIMITED;
  const hsize_t start = 0;
  const Hid<H5Sclose> space(check_h5(H5Screate_simple(1, &least, &most), "describe"));
  check_h5(H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, nullptr, &least, &most), "select");
  const Hid<H5Pclose> creation(check_h5(H5Pcreate(H5P_DATASET_CREATE), "make a list"));
  check_h5(H5Pset_virtual(creation, space, "/no/such/file", "/x", space), "make virtual");
  const Hid<H5Dclose> dataset(
      check_h5(H5Dcreate2(file, name, type, space, H5P_DEFAULT, creation, H5P_DEFAULT), "create"));
}

}  // namespace lockstep
