// How HDF5 files are written: most in memory, so that writing one to disk is a single write of known bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/io/hdf5.hpp"

namespace lockstep {

// A file access property list for files in memory. It selects HDF5's oldest format, which HDF5 1.8 and later read, and
// which every version writes with the same bytes. Call it first in every thread that works on such a file: it also
// silences HDF5 there. Throws as require_memory_for_hdf5().
Hid<H5Pclose> hdf5_core_access_plist();
// The same for files on disk, without locks, which fail on Lustre and NFS.
Hid<H5Pclose> hdf5_file_access_plist();

// The bytes of an open file, exactly as they would be on disk.
std::vector<std::byte> hdf5_image(hid_t file);

// A UTF-8 string type of fixed length, at least one byte, padded with zeros.
Hid<H5Tclose> hdf5_text_type(std::size_t bytes);

// Writes an attribute that holds one integer.
void hdf5_write_number(hid_t object, const char* name, std::int32_t value);

// Writes an attribute that holds a list of texts, with shape [texts.size()] and the length of the longest. HDF5 limits
// attributes of this format to 64 KiB, so a longer list continues in further ones: hdf5_part_name(). A text of more
// than 65,400 bytes does not fit.
void hdf5_write_texts(hid_t object, const char* name, std::span<const std::string> texts);
// "classes", "classes2", "classes3" and so on for part 0, 1, 2 of "classes".
std::string hdf5_part_name(const char* name, std::size_t part);
// The most bytes that the list takes in a file.
std::size_t hdf5_texts_bytes(std::span<const std::string> texts);

}  // namespace lockstep
