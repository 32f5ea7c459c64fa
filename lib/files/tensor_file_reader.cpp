// Reads files of any origin. HDF5 reports what the file claims, and every claim is checked against the file's length.
#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <numeric>
#include <type_traits>
#include <utility>

#include "base/io/hdf5_memory.hpp"
#include "files/tensor_file.hpp"

namespace lockstep {

namespace {

namespace limits = tensor_file_limits;

}  // namespace

TensorFileReader::TensorFileReader(FileKind kind, std::string path, std::string& image)
    : kind_(kind), path_(std::move(path)), bytes_(static_cast<hsize_t>(image.size())) {
  silence_hdf5();
  if (!looks_like_hdf5(std::as_bytes(std::span(image)))) damaged("it does not start with the HDF5 signature");
  if (has_hash_line(image)) {
    const std::string_view before = std::string_view(image).substr(0, image.size() - hash_line({}).size());
    if (!image.ends_with(hash_line(std::as_bytes(std::span(before))))) damaged("its hash does not match its content");
  }
  const Hid<H5Pclose> access = hdf5_core_access_plist();
  check_h5(H5Pset_file_image(access, image.data(), image.size()), "open a file image in memory");
  // HDF5 requires a name, although it reads only the image. No file has this name.
  // careful-open: an image in memory of what regular_file read
  file_ = Hid<H5Fclose>(H5Fopen((path_ + ".in-memory").c_str(), H5F_ACC_RDONLY, access));
  if (file_ < 0) damaged("HDF5 cannot open it: " + hdf5_error_message());
}

void TensorFileReader::damaged(const std::string& what) const {
  throw Error(Failure::bad_data,
              fmt::format("{} '{}' is damaged or not a {}: {}. {}", kind_.name, path_, kind_.name, what, kind_.advice));
}

void TensorFileReader::require_format(const char* name, std::int32_t oldest, std::int32_t newest) const {
  const std::int32_t found = numbers<std::int32_t>(name, 1)[0];
  if (found < 1) damaged(fmt::format("its attribute '{}' is {}", name, found));
  require(found >= oldest && found <= newest, Failure::bad_data,
          "{} '{}' was written by {} Lockstep (format {}). This Lockstep reads format {}. Use the version that wrote "
          "the file.",
          kind_.name, path_, found < oldest ? "an older" : "a newer", found, newest);
}

bool TensorFileReader::has_attribute(const char* name) const { return H5Aexists(file_, name) > 0; }

Hid<H5Aclose> TensorFileReader::attribute(const char* name) const {
  if (!has_attribute(name)) damaged(fmt::format("it has no attribute '{}'", name));
  return Hid<H5Aclose>(checked(H5Aopen(file_, name, H5P_DEFAULT), "open an attribute"));
}

// The number of elements of an attribute with at most one dimension; 1 for a scalar.
hsize_t TensorFileReader::attribute_count(hid_t attribute, const char* name) const {
  const Hid<H5Sclose> space(checked(H5Aget_space(attribute), "read an attribute's shape"));
  const hssize_t count = H5Sget_simple_extent_npoints(space);
  if (H5Sget_simple_extent_ndims(space) > 1 || count < 1 || static_cast<std::size_t>(count) > limits::texts) {
    damaged(fmt::format("its attribute '{}' has the wrong shape", name));
  }
  return static_cast<hsize_t>(count);
}

template <typename T>
std::vector<T> TensorFileReader::numbers(const char* name, std::size_t count) const {
  const Hid<H5Aclose> handle = attribute(name);
  const Hid<H5Tclose> type(checked(H5Aget_type(handle), "read an attribute's type"));
  const H5T_class_t wanted = std::is_floating_point_v<T> ? H5T_FLOAT : H5T_INTEGER;
  if (H5Tget_class(type) != wanted || H5Tget_size(type) != sizeof(T) || attribute_count(handle, name) != count) {
    damaged(fmt::format("its attribute '{}' has the wrong type or shape", name));
  }
  std::vector<T> values(count);
  const hid_t memory = std::is_same_v<T, float>          ? H5T_NATIVE_FLOAT
                       : std::is_same_v<T, std::int32_t> ? H5T_NATIVE_INT32
                                                         : H5T_NATIVE_INT64;
  checked(H5Aread(handle, memory, values.data()), "read an attribute");
  return values;
}

template std::vector<float> TensorFileReader::numbers(const char* name, std::size_t count) const;
template std::vector<std::int32_t> TensorFileReader::numbers(const char* name, std::size_t count) const;
template std::vector<std::int64_t> TensorFileReader::numbers(const char* name, std::size_t count) const;

std::vector<std::string> TensorFileReader::texts(const char* name) const {
  std::vector<std::string> texts;
  add_texts(name, texts);
  for (std::size_t part = 1; has_attribute(hdf5_part_name(name, part).c_str()); ++part) {
    add_texts(hdf5_part_name(name, part).c_str(), texts);
  }
  return texts;
}

// Appends those of one attribute.
void TensorFileReader::add_texts(const char* name, std::vector<std::string>& texts) const {
  const Hid<H5Aclose> handle = attribute(name);
  const Hid<H5Tclose> type(checked(H5Aget_type(handle), "read an attribute's type"));
  const std::size_t cell = H5Tget_size(type);
  if (H5Tget_class(type) != H5T_STRING || H5Tis_variable_str(type) != 0 || cell < 1 || cell > limits::text_bytes) {
    damaged(fmt::format("its attribute '{}' is not a string of fixed length", name));
  }
  const hsize_t count = attribute_count(handle, name);
  if (count > bytes_ / cell) damaged(fmt::format("its attribute '{}' is longer than the file", name));
  // A damaged file can claim the same bytes for many attributes.
  if (count > limits::texts - texts.size()) damaged(fmt::format("its attribute '{}' has the wrong shape", name));
  std::string cells(count * cell, '\0');
  const Hid<H5Tclose> text_type = hdf5_text_type(cell);
  // ASCII, which other programs write, is valid UTF-8. HDF5 does not convert between the two.
  checked(H5Tset_cset(text_type, H5Tget_cset(type)), "set an attribute's character encoding");
  checked(H5Aread(handle, text_type, cells.data()), "read an attribute");
  for (hsize_t index = 0; index < count; ++index) {
    const char* text = cells.data() + index * cell;
    texts.emplace_back(text, strnlen(text, cell));
  }
}

Hid<H5Oclose> TensorFileReader::open_own(hid_t location, const std::string& name) const {
  if (!is_hard_link(location, name)) damaged(fmt::format("'{}' is a soft or external link", name));
  return Hid<H5Oclose>(checked(H5Oopen(location, name.c_str(), H5P_DEFAULT), "open an object"));
}

Hid<H5Oclose> TensorFileReader::open_own(hid_t location, const std::string& name, H5I_type_t type,
                                         const char* type_text) const {
  Hid<H5Oclose> object = open_own(location, name);
  if (H5Iget_type(object) != type) damaged(fmt::format("'{}' is not a {}", name, type_text));
  return object;
}

Hid<H5Oclose> TensorFileReader::open_dataset(hid_t location, const std::string& name) const {
  Hid<H5Oclose> dataset = open_own(location, name, H5I_DATASET, "dataset");
  if (!is_contiguous(dataset)) damaged(fmt::format("'{}' is not stored contiguously", name));
  return dataset;
}

std::vector<std::string> TensorFileReader::groups() const {
  H5G_info_t info;
  checked(H5Gget_info(file_, &info), "list the objects of the root group");
  if (info.nlinks > limits::root_objects) damaged(fmt::format("it contains {} objects", info.nlinks));
  std::vector<std::string> names;
  for (hsize_t index = 0; index < info.nlinks; ++index) {
    std::string name = name_at(file_, index);
    if (H5Iget_type(open_own(file_, name)) == H5I_GROUP) names.push_back(std::move(name));
  }
  return names;
}

std::vector<ParameterStore::Entry> TensorFileReader::tensors(const char* group) {
  const bool is_root = group == std::string_view(root_group);
  if (!is_root && H5Lexists(file_, group, H5P_DEFAULT) <= 0) damaged(fmt::format("it has no group '{}'", group));
  const Hid<H5Oclose> opened = is_root
                                   ? Hid<H5Oclose>(checked(H5Oopen(file_, group, H5P_DEFAULT), "open the root group"))
                                   : open_own(file_, group, H5I_GROUP, "group");
  H5G_info_t info;
  checked(H5Gget_info(opened, &info), "list the tensors");
  if (info.nlinks < 1 || info.nlinks > limits::tensors) damaged(fmt::format("it contains {} parameters", info.nlinks));
  std::vector<ParameterStore::Entry> entries;
  for (hsize_t index = 0; index < info.nlinks; ++index) entries.push_back(read_tensor(opened, index));
  std::ranges::sort(entries, {}, &ParameterStore::Entry::name);
  return entries;
}

std::string TensorFileReader::name_at(hid_t group, hsize_t index) const {
  std::array<char, limits::name_bytes + 1> name{};
  const ssize_t length =
      H5Lget_name_by_idx(group, ".", H5_INDEX_NAME, H5_ITER_INC, index, name.data(), name.size(), H5P_DEFAULT);
  if (length < 1 || static_cast<std::size_t>(length) >= name.size()) damaged("a parameter's name is too long");
  return name.data();
}

ParameterStore::Entry TensorFileReader::read_tensor(hid_t group, hsize_t index) {
  ParameterStore::Entry entry{name_at(group, index), {}, {}};
  const Hid<H5Oclose> object = open_dataset(group, entry.name);
  const Hid<H5Tclose> type(checked(H5Dget_type(object), "read a tensor's type"));
  if (H5Tequal(type, H5T_IEEE_F32LE) <= 0) damaged(fmt::format("'{}' is not 32-bit floating point", entry.name));
  entry.dims = read_dims(object, entry.name, sizeof(float));
  const std::int64_t count =
      std::accumulate(entry.dims.begin(), entry.dims.end(), std::int64_t{1}, std::multiplies<>());
  check_size(object, entry.name, static_cast<hsize_t>(count) * sizeof(float));
  entry.values.resize(static_cast<std::size_t>(count));
  checked(H5Dread(object, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, entry.values.data()), "read a tensor");
  return entry;
}

std::string TensorFileReader::long_text(const char* name) {
  if (H5Lexists(file_, name, H5P_DEFAULT) <= 0) damaged(fmt::format("it has no dataset '{}'", name));
  const Hid<H5Oclose> object = open_dataset(file_, name);
  const Hid<H5Tclose> type(checked(H5Dget_type(object), "read a string's type"));
  if (H5Tequal(type, H5T_STD_U8LE) <= 0) damaged(fmt::format("'{}' is not a string of bytes", name));
  const std::vector<std::int64_t> dims = read_dims(object, name, 1);
  if (dims.size() != 1) damaged(fmt::format("'{}' has {} dimensions", name, dims.size()));
  check_size(object, name, static_cast<hsize_t>(dims[0]));
  std::string text(static_cast<std::size_t>(dims[0]), '\0');
  checked(H5Dread(object, H5T_NATIVE_UINT8, H5S_ALL, H5S_ALL, H5P_DEFAULT, text.data()), "read a string");
  return text;
}

std::vector<std::int32_t> TensorFileReader::whole_numbers(const char* name) {
  if (H5Lexists(file_, name, H5P_DEFAULT) <= 0) damaged(fmt::format("it has no dataset '{}'", name));
  const Hid<H5Oclose> object = open_dataset(file_, name);
  const Hid<H5Tclose> type(checked(H5Dget_type(object), "read a dataset's type"));
  if (H5Tequal(type, H5T_STD_I32LE) <= 0) damaged(fmt::format("'{}' does not contain 32-bit integers", name));
  const std::vector<std::int64_t> dims = read_dims(object, name, sizeof(std::int32_t));
  if (dims.size() != 1) damaged(fmt::format("'{}' has {} dimensions", name, dims.size()));
  check_size(object, name, static_cast<hsize_t>(dims[0]) * sizeof(std::int32_t));
  std::vector<std::int32_t> values(static_cast<std::size_t>(dims[0]));
  checked(H5Dread(object, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), "read a dataset");
  return values;
}

// The dims, whose product is limited by the file's length.
std::vector<std::int64_t> TensorFileReader::read_dims(hid_t dataset, const std::string& name,
                                                      std::size_t element_bytes) const {
  const Hid<H5Sclose> space(checked(H5Dget_space(dataset), "read a shape"));
  std::array<hsize_t, limits::dimensions> dims{};
  const int ndim = H5Sget_simple_extent_ndims(space);
  if (ndim < 1 || ndim > static_cast<int>(dims.size())) damaged(fmt::format("'{}' has {} dimensions", name, ndim));
  H5Sget_simple_extent_dims(space, dims.data(), nullptr);
  hsize_t count = 1;
  for (const hsize_t size : std::span(dims).first(static_cast<std::size_t>(ndim))) {
    if (size < 1 || size > bytes_ / element_bytes / count) damaged(fmt::format("'{}' is larger than the file", name));
    count *= size;
  }
  return {dims.begin(), dims.begin() + ndim};
}

// Throws unless the values are complete and inside this file.
void TensorFileReader::check_size(hid_t dataset, const std::string& name, hsize_t bytes) {
  if (H5Dget_storage_size(dataset) != bytes) damaged(fmt::format("'{}' is not stored completely", name));
  total_ += bytes;
  if (total_ > bytes_) damaged("its parameters are larger than the file");
}

bool looks_like_hdf5(std::span<const std::byte> bytes) {
  constexpr std::array<unsigned char, 8> signature = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};
  return bytes.size() >= signature.size() && std::memcmp(bytes.data(), signature.data(), signature.size()) == 0;
}

}  // namespace lockstep
