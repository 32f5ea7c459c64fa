#include "base/io/hdf5_memory.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace lockstep {
namespace {

void write_attribute(hid_t object, const char* name, hid_t space, hid_t type, const void* values) {
  const Hid<H5Aclose> attribute(
      check_h5(H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT), "create an attribute"));
  check_h5(H5Awrite(attribute, type, values), "write an attribute");
}

// Most bytes of an attribute's values. Its header takes the rest of 64 KiB.
constexpr std::size_t attribute_bytes = 65'400;

std::size_t longest_of(std::span<const std::string> texts) {
  std::size_t longest = 1;
  for (const std::string& text : texts) longest = std::max(longest, text.size());
  return longest;
}

// How many of the first texts fit into one attribute: at least one, if there is one.
std::size_t texts_of_attribute(std::span<const std::string> texts) {
  std::size_t longest = 1;
  std::size_t count = 0;
  for (const std::string& text : texts) {
    longest = std::max(longest, text.size());
    if (count > 0 && (count + 1) * longest > attribute_bytes) break;
    ++count;
  }
  return count;
}

void write_list(hid_t object, const char* name, std::span<const std::string> texts) {
  const std::size_t longest = longest_of(texts);
  std::string cells;
  for (const std::string& text : texts) cells += text + std::string(longest - text.size(), '\0');
  const hsize_t count = texts.size();
  const Hid<H5Sclose> space(check_h5(H5Screate_simple(1, &count, nullptr), "describe an attribute"));
  write_attribute(object, name, space, hdf5_text_type(longest), cells.data());
}

}  // namespace

Hid<H5Pclose> hdf5_core_access_plist() {
  constexpr std::size_t growth_bytes = 1 << 20;
  constexpr hbool_t never_to_disk = false;
  Hid<H5Pclose> access = hdf5_file_access_plist();
  check_h5(H5Pset_fapl_core(access, growth_bytes, never_to_disk), "keep a file in memory");
  return access;
}

Hid<H5Pclose> hdf5_file_access_plist() {
  require_memory_for_hdf5();
  silence_hdf5();
  Hid<H5Pclose> access(check_h5(H5Pcreate(H5P_FILE_ACCESS), "make an access list"));
  check_h5(H5Pset_file_locking(access, false, true), "do without file locks");
  // The oldest sufficient format: newer ones contain a checksum, which H5Fget_file_image leaves wrong.
  check_h5(H5Pset_libver_bounds(access, H5F_LIBVER_EARLIEST, H5F_LIBVER_V18), "choose a file format");
  return access;
}

std::vector<std::byte> hdf5_image(hid_t file) {
  check_h5(H5Fflush(file, H5F_SCOPE_GLOBAL), "finish a file in memory");
  const ssize_t bytes = check_h5(H5Fget_file_image(file, nullptr, 0), "measure a file in memory");
  std::vector<std::byte> image(static_cast<std::size_t>(bytes));
  check_h5(H5Fget_file_image(file, image.data(), image.size()), "copy a file in memory");
  return image;
}

Hid<H5Tclose> hdf5_text_type(std::size_t bytes) {
  Hid<H5Tclose> type(check_h5(H5Tcopy(H5T_C_S1), "make a text type"));
  check_h5(H5Tset_size(type, std::max<std::size_t>(bytes, 1)), "make a text type");
  check_h5(H5Tset_strpad(type, H5T_STR_NULLPAD), "make a text type");
  check_h5(H5Tset_cset(type, H5T_CSET_UTF8), "make a text type");
  return type;
}

void hdf5_write_number(hid_t object, const char* name, std::int32_t value) {
  const Hid<H5Sclose> space(check_h5(H5Screate(H5S_SCALAR), "describe an attribute"));
  write_attribute(object, name, space, H5T_STD_I32LE, &value);
}

void hdf5_write_texts(hid_t object, const char* name, std::span<const std::string> texts) {
  std::size_t part = 0;
  do {
    const std::span<const std::string> fitting = texts.first(texts_of_attribute(texts));
    write_list(object, hdf5_part_name(name, part++).c_str(), fitting);
    texts = texts.subspan(fitting.size());
  } while (!texts.empty());
}

std::string hdf5_part_name(const char* name, std::size_t part) {
  return part == 0 ? name : fmt::format("{}{}", name, part + 1);
}

std::size_t hdf5_texts_bytes(std::span<const std::string> texts) {
  constexpr std::size_t header_bytes = 256;  // of an attribute, with what HDF5 leaves free before it
  const std::size_t cells = texts.size() * longest_of(texts);
  // Each part but the last is more than half full.
  return cells + (1 + 2 * cells / attribute_bytes) * header_bytes;
}

}  // namespace lockstep
