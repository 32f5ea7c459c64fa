#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/io/hdf5_memory.hpp"
#include "base/system_failure.hpp"
#include "files/tensor_file.hpp"

namespace lockstep {

namespace {

namespace limits = tensor_file_limits;

// Throws if a reader would call the file damaged because of `what`.
void require_readable(bool condition, const std::string& what) {
  require(condition, Failure::usage,
          "cannot write a model file or checkpoint: {}. No program could read it. Train on another data set, or "
          "another model.",
          what);
}

void require_readable_texts(const char* name, std::span<const std::string> texts) {
  require_readable(!texts.empty() && texts.size() <= limits::texts,
                   fmt::format("'{}' has {} strings, not 1 to {}", name, texts.size(), limits::texts));
  for (const std::string& text : texts) {
    require_readable(text.size() <= limits::text_bytes,
                     fmt::format("a string of '{}' has {} bytes, more than {}", name, text.size(), limits::text_bytes));
    require_readable(text.find('\0') == std::string::npos, fmt::format("a string of '{}' contains a zero byte", name));
  }
}

void require_readable_tensor(const std::string& name, std::span<const std::int64_t> dims) {
  require_readable(!name.empty() && name.size() <= limits::name_bytes,
                   fmt::format("a tensor's name has {} bytes, not 1 to {}", name.size(), limits::name_bytes));
  require_readable(!dims.empty() && dims.size() <= limits::dimensions,
                   fmt::format("'{}' has {} dimensions, not 1 to {}", name, dims.size(), limits::dimensions));
  require_readable(std::ranges::all_of(dims, [](std::int64_t size) { return size > 0; }),
                   fmt::format("'{}' has a dimension of size 0", name));
}

// No timestamps: they would make files with equal content differ.
Hid<H5Pclose> without_dates() {
  Hid<H5Pclose> creation(check_h5(H5Pcreate(H5P_DATASET_CREATE), "create a property list"));
  check_h5(H5Pset_obj_track_times(creation, false), "turn off timestamps");
  return creation;
}

void write_attribute(hid_t root, const char* name, hid_t type, std::size_t size, const void* values) {
  const hsize_t count = size;
  const Hid<H5Sclose> space(check_h5(H5Screate_simple(1, &count, nullptr), "describe the shape of an attribute"));
  const Hid<H5Aclose> attribute(
      check_h5(H5Acreate2(root, name, type, space, H5P_DEFAULT, H5P_DEFAULT), "create an attribute"));
  check_h5(H5Awrite(attribute, type, values), "write an attribute");
}

Hid<H5Sclose> space_of(std::span<const hsize_t> dims) {
  return Hid<H5Sclose>(
      check_h5(H5Screate_simple(static_cast<int>(dims.size()), dims.data(), nullptr), "describe a tensor's shape"));
}

// Without values.
Hid<H5Dclose> make_dataset(hid_t group, const std::string& name, const std::vector<std::int64_t>& dims) {
  require_readable_tensor(name, dims);
  return Hid<H5Dclose>(
      check_h5(H5Dcreate2(group, name.c_str(), H5T_IEEE_F32LE, space_of(std::vector<hsize_t>(dims.begin(), dims.end())),
                          H5P_DEFAULT, without_dates(), H5P_DEFAULT),
               "create a tensor's dataset"));
}

}  // namespace

TensorFileWriter::TensorFileWriter() {
  silence_hdf5();
  const Hid<H5Pclose> access = hdf5_core_access_plist();
  // HDF5 requires a name, although nothing is written to disk.
  file_ = Hid<H5Fclose>(
      check_h5(H5Fcreate("lockstep.in-memory", H5F_ACC_TRUNC, H5P_DEFAULT, access), "create a file in memory"));
}

TensorFileWriter::TensorFileWriter(UnpublishedFile& file, std::int64_t bytes) : on_disk_(&file) {
  require_readable(bytes <= static_cast<std::int64_t>(limits::file_bytes),
                   fmt::format("it would have {} bytes, more than {}", bytes, limits::file_bytes));
  file.reserve(bytes);  // on a full disk, HDF5 does not even begin
  const Hid<H5Pclose> access = hdf5_file_access_plist();
  // HDF5 opens the same file again, whatever its name refers to meanwhile.
  const std::string name = fmt::format("/proc/self/fd/{}", file.descriptor());
  file_ = Hid<H5Fclose>(check_h5(H5Fcreate(name.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access), "create a file on disk"));
  file.reserve(bytes);  // again: HDF5 has emptied the file
}

void TensorFileWriter::finish() {
  tensor_ = {};
  group_ = {};
  check_h5(H5Fflush(file_, H5F_SCOPE_GLOBAL), "write a file to disk");
  hsize_t bytes = 0;
  check_h5(H5Fget_filesize(file_, &bytes), "tell the size of a file");
  file_ = {};
  on_disk_->shorten(static_cast<std::int64_t>(bytes));
  GrowingHash hash;
  std::vector<std::byte> block(std::size_t{1} << 20);
  off_t at = 0;
  for (ssize_t got = -1; got != 0; at += got) {
    got = ::pread(on_disk_->descriptor(), block.data(), block.size(), at);
    if (got < 0) throw system_failure("cannot read an unfinished checkpoint", errno, Access::reading);
    hash.add(std::span(block).first(static_cast<std::size_t>(got)));
  }
  require_readable(static_cast<std::size_t>(at) <= limits::file_bytes - hash_line_bytes,
                   fmt::format("it has {} bytes, more than {}", at, limits::file_bytes));
  const std::string line = hash_line_of(hash);
  on_disk_->append(std::as_bytes(std::span(line)));
}

void TensorFileWriter::write_number(const char* name, std::int32_t value) { hdf5_write_number(file_, name, value); }

void TensorFileWriter::write_numbers(const char* name, const std::vector<std::int64_t>& values) {
  write_attribute(file_, name, H5T_STD_I64LE, values.size(), values.data());
}

void TensorFileWriter::write_numbers(const char* name, const std::vector<float>& values) {
  write_attribute(file_, name, H5T_IEEE_F32LE, values.size(), values.data());
}

void TensorFileWriter::write_text(const char* name, const std::string& text) { write_texts(name, std::span(&text, 1)); }

void TensorFileWriter::write_texts(const char* name, std::span<const std::string> texts) {
  require_readable_texts(name, texts);
  hdf5_write_texts(file_, name, texts);
}

void TensorFileWriter::write_long_text(const char* name, const std::string& text) {
  require_readable(!text.empty(), fmt::format("'{}' is empty", name));
  const hsize_t bytes = text.size();
  const Hid<H5Sclose> space(check_h5(H5Screate_simple(1, &bytes, nullptr), "describe the shape of a string"));
  const Hid<H5Dclose> dataset(check_h5(
      H5Dcreate2(file_, name, H5T_STD_U8LE, space, H5P_DEFAULT, without_dates(), H5P_DEFAULT), "create a string"));
  check_h5(H5Dwrite(dataset, H5T_NATIVE_UINT8, H5S_ALL, H5S_ALL, H5P_DEFAULT, text.data()), "write a string");
}

void TensorFileWriter::write_tensors(const char* group, std::span<const ParameterStore::Entry> tensors) {
  require_readable(!tensors.empty() && tensors.size() <= limits::tensors,
                   fmt::format("it has {} tensors, not 1 to {}", tensors.size(), limits::tensors));
  begin_tensors(group);
  for (const ParameterStore::Entry& tensor : tensors) write_tensor(tensor);
}

void TensorFileWriter::begin_tensors(const char* group) {
  const hid_t opened = group == std::string_view(root_group)
                           ? H5Gopen2(file_, group, H5P_DEFAULT)
                           : H5Gcreate2(file_, group, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  group_ = Hid<H5Gclose>(check_h5(opened, "create a group of tensors"));
}

void TensorFileWriter::write_tensor(const ParameterStore::Entry& tensor) {
  const Hid<H5Dclose> dataset = make_dataset(group_, tensor.name, tensor.dims);
  check_h5(H5Dwrite(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, tensor.values.data()),
           "write a tensor's values");
}

void TensorFileWriter::begin_tensor(const std::string& name, std::int64_t count) {
  tensor_ = make_dataset(group_, name, {count});
  written_ = 0;
}

void TensorFileWriter::write_values(std::span<const float> values) {
  const hsize_t count = values.size();
  const Hid<H5Sclose> all(check_h5(H5Dget_space(tensor_), "describe a tensor's shape"));
  check_h5(H5Sselect_hyperslab(all, H5S_SELECT_SET, &written_, nullptr, &count, nullptr), "select a tensor's values");
  check_h5(H5Dwrite(tensor_, H5T_NATIVE_FLOAT, space_of(std::span(&count, 1)), all, H5P_DEFAULT, values.data()),
           "write a tensor's values");
  written_ += count;
}

std::vector<std::byte> TensorFileWriter::image() const {
  std::vector<std::byte> image = hdf5_image(file_);
  const std::string line = hash_line(image);
  const auto bytes = std::as_bytes(std::span(line));
  image.insert(image.end(), bytes.begin(), bytes.end());
  require_readable(image.size() <= limits::file_bytes,
                   fmt::format("it has {} bytes, more than {}", image.size(), limits::file_bytes));
  return image;
}

}  // namespace lockstep
