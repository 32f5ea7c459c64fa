// Tensors in an HDF5 file that another program wrote, a data set of the root for each: what h5py's
// file[name] = values makes.
//
// Such a file has no hash that tells damage, and HDF5's library crashes in some damaged structures. So these bytes are
// read here, by the part of the format's specification (version 3.0, superblock 0 or 1) that h5py writes unless it is
// told otherwise: groups as symbol tables, values in one piece. The rest is refused by name. Attributes are passed
// over.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "files/import/weight_bytes.hpp"

namespace lockstep {

// In name order; counters are left out. Trusts nothing. Throws as WeightBytes::refuse().
std::vector<ParameterStore::Entry> read_hdf5_tensors(const WeightBytes& file);

// Names of the root's members, in name order, and whether one of them is a data set of floating-point numbers. Throws
// likewise.
struct Hdf5Root {
  std::vector<std::string> names;
  bool has_floats = false;
};
Hdf5Root hdf5_root(const WeightBytes& file);

// Whether the root has such an attribute, or a member of this name. Throw likewise.
bool has_root_attribute(const WeightBytes& file, std::string_view name);
bool has_root_member(const WeightBytes& file, std::string_view name);

}  // namespace lockstep
