// HDF5 files that are built or read in memory, so that writing one is a single write of known bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/io/hdf5.hpp"

namespace lockstep {

// A file access list for files in memory, in HDF5 1.8's form: the same bytes from every newer library, checksums on all
// of the library's own structures, and attributes of any size. The first call of any thread that works on such a file,
// which HDF5 then prints nothing from.
Hid<H5Pclose> hdf5_in_memory();

// The bytes of an open file, as they would lie on disk.
std::vector<std::byte> hdf5_image(hid_t file);

// UTF-8 of a fixed length, at least one byte, filled up with zeros.
Hid<H5Tclose> hdf5_text_type(std::size_t bytes);

// An attribute that holds one whole number, and one that holds a list of texts: [texts.size()], as long as the longest.
void hdf5_write_number(hid_t object, const char* name, std::int32_t value);
void hdf5_write_texts(hid_t object, const char* name, std::span<const std::string> texts);

}  // namespace lockstep
