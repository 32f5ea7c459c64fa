// Reads tensors from an HDF5 file that another program wrote. The root has one dataset for each tensor, as h5py's
// file[name] = values writes it.
//
// Such a file has no hash to detect damage, and the HDF5 library crashes on some damaged structures. So this code reads
// the bytes itself. It implements the part of the HDF5 file format specification (version 3.0, superblock 0 or 1) that
// h5py writes by default: groups as symbol tables, contiguous values. It refuses everything else by name, and skips
// attributes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "files/import/weight_bytes.hpp"

namespace lockstep {

// The tensors in name order, without counters. Treats the file as untrusted. Throws as WeightBytes::refuse().
std::vector<ParameterStore::Entry> read_hdf5_tensors(const WeightBytes& file);

// The names of the root's members, in name order, and whether one of them is a floating-point dataset. Throws as
// WeightBytes::refuse().
struct Hdf5Root {
  std::vector<std::string> names;
  bool has_floats = false;
};
Hdf5Root hdf5_root(const WeightBytes& file);

// Whether the root has an attribute, or a member, of this name. Throw as WeightBytes::refuse().
bool has_root_attribute(const WeightBytes& file, std::string_view name);
bool has_root_member(const WeightBytes& file, std::string_view name);

}  // namespace lockstep
