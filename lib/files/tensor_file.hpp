// HDF5 files of named fp32 tensors with attributes: the common format of model files and checkpoints.
//
// Both are read in memory as a whole, and written in memory or tensor by tensor to disk. Attributes are on the root
// group. Tensors are in the root group, or in a group of their own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/io/file.hpp"
#include "base/io/hdf5.hpp"
#include "dataset/shards/hash.hpp"
#include "nn/parameter_store.hpp"

namespace lockstep {

inline constexpr const char* root_group = "/";

// The limits of the reader. The writer respects them, too.
namespace tensor_file_limits {
inline constexpr std::size_t file_bytes = std::size_t{1} << 36;  // four billion parameters in a checkpoint
inline constexpr std::size_t texts = 1 << 20;
inline constexpr std::size_t text_bytes = 4096;  // without zero bytes, because HDF5 pads texts with zeros
inline constexpr std::size_t tensors = 1 << 20;
inline constexpr std::size_t name_bytes = 4095;
inline constexpr std::size_t dimensions = 4;
inline constexpr std::size_t root_objects = 64;  // in addition to tensors of the root
}  // namespace tensor_file_limits

// Throws Error(usage) if a reader would call the file damaged, and Error(other) if its bytes cannot be written. Writers
// and readers hold lock_hdf5() while they exist, because training and checkpoints have threads of their own.
class TensorFileWriter {
 public:
  // In memory.
  TensorFileWriter();
  // On disk: memory holds HDF5's structures, but no tensors. `file` is empty and outlives this. Reserves `bytes`,
  // because HDF5 1.10 crashes at the end of a process that could not write all of a file.
  TensorFileWriter(UnpublishedFile& file, std::int64_t bytes);
  TensorFileWriter(const TensorFileWriter&) = delete;
  TensorFileWriter& operator=(const TensorFileWriter&) = delete;

  void write_number(const char* name, std::int32_t value);
  void write_numbers(const char* name, const std::vector<std::int64_t>& values);
  void write_numbers(const char* name, const std::vector<float>& values);
  void write_text(const char* name, const std::string& text);
  void write_texts(const char* name, std::span<const std::string> texts);  // as hdf5_write_texts()
  // Stored as a dataset of bytes, because an attribute of HDF5 1.8 is limited to 64 KiB.
  void write_long_text(const char* name, const std::string& text);
  // Creates the group, unless it is the root.
  void write_tensors(const char* group, std::span<const ParameterStore::Entry> tensors);
  // The same one by one: after begin_tensors(), in its group.
  void begin_tensors(const char* group);
  void write_tensor(const ParameterStore::Entry& tensor);
  // The same with a tensor of one dimension, whose values follow in pieces.
  void begin_tensor(const std::string& name, std::int64_t count);
  void write_values(std::span<const float> values);

  std::vector<std::byte> image() const;  // the file's bytes, in memory
  void finish();                         // completes the file on disk; then it can be published

 private:
  std::unique_lock<std::recursive_mutex> lock_ = lock_hdf5();  // released last
  Hid<H5Fclose> file_;
  Hid<H5Gclose> group_;
  Hid<H5Dclose> tensor_;  // whose values are being written
  hsize_t written_ = 0;   // of them
  UnpublishedFile* on_disk_ = nullptr;
};

// How messages of a reader name the file ("checkpoint"), and their advice for a damaged one.
struct FileKind {
  const char* name;
  const char* advice;
};

// Treats the file as untrusted: checks every name, type and size against the file's length before it allocates memory.
// Throws Error(bad_data) with the file and the object for any defect.
class TensorFileReader {
 public:
  // Reads `image`, the bytes of the file `path`. They may be changed, and must outlive this. HDF5 reads them only after
  // their hash_line() was verified; a file of another program has none.
  TensorFileReader(FileKind kind, std::string path, std::string& image);

  // Throws Error(bad_data): "<kind> '<path>' is damaged or not a <kind>: <what>. <advice>".
  [[noreturn]] void damaged(const std::string& what) const;
  // Throws Error(bad_data) if the attribute is not in the range `oldest` to `newest`. The message says whether an older
  // or a newer version wrote the file. Call it first, because other versions have other objects.
  void require_format(const char* name, std::int32_t oldest, std::int32_t newest) const;

  bool has_attribute(const char* name) const;
  // T is std::int32_t, std::int64_t or float.
  template <typename T>
  std::vector<T> numbers(const char* name, std::size_t count) const;
  std::vector<std::string> texts(const char* name) const;  // one or more, of all parts of the list
  std::string long_text(const char* name);
  std::vector<std::int32_t> whole_numbers(const char* name);  // a one-dimensional dataset
  // The names of the groups in the root, in name order. Throws Error(bad_data) if one is an external or soft link.
  std::vector<std::string> groups() const;
  // In name order, one or more. Reads only datasets of this file, because a link may point to any file of this machine.
  std::vector<ParameterStore::Entry> tensors(const char* group);

 private:
  // Returns `result`, or throws as damaged() if it is negative, HDF5's sign of failure. `task` completes the sentence
  // "HDF5 could not ...".
  template <typename Result>
  Result checked(Result result, std::string_view task) const {
    if (result < 0) damaged(fmt::format("HDF5 could not {}: {}", task, hdf5_error_message()));
    return result;
  }
  Hid<H5Aclose> attribute(const char* name) const;
  hsize_t attribute_count(hid_t attribute, const char* name) const;
  void add_texts(const char* name, std::vector<std::string>& texts) const;
  Hid<H5Oclose> open_own(hid_t location, const std::string& name) const;
  Hid<H5Oclose> open_own(hid_t location, const std::string& name, H5I_type_t type, const char* type_text) const;
  Hid<H5Oclose> open_dataset(hid_t location, const std::string& name) const;
  std::string name_at(hid_t group, hsize_t index) const;
  ParameterStore::Entry read_tensor(hid_t group, hsize_t index);
  std::vector<std::int64_t> read_dims(hid_t dataset, const std::string& name, std::size_t element_bytes) const;
  void check_size(hid_t dataset, const std::string& name, hsize_t bytes);

  std::unique_lock<std::recursive_mutex> lock_ = lock_hdf5();  // released last
  FileKind kind_;
  std::string path_;
  hsize_t bytes_;
  hsize_t total_ = 0;  // bytes of tensors so far; two datasets may claim the same bytes
  Hid<H5Fclose> file_;
};

// Whether the bytes begin with the HDF5 signature.
bool looks_like_hdf5(std::span<const std::byte> bytes);

}  // namespace lockstep
