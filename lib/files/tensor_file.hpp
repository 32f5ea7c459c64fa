// HDF5 files of named fp32 tensors with attributes beside them: what model files and checkpoints are made of.
//
// Both are built and read in memory, whole. Attributes lie on the root group; tensors there, or in a group of their
// own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/io/hdf5.hpp"
#include "dataset/shards/hash.hpp"
#include "nn/parameter_store.hpp"

namespace lockstep {

inline constexpr const char* root_group = "/";

// What a reader takes, and so the most that a writer writes.
namespace tensor_file_limits {
inline constexpr std::size_t file_bytes = std::size_t{1} << 36;  // four billion parameters in a checkpoint
inline constexpr std::size_t texts = 1 << 20;
inline constexpr std::size_t text_bytes = 4096;  // none of them zero: HDF5 fills texts up with zeros
inline constexpr std::size_t tensors = 1 << 20;
inline constexpr std::size_t name_bytes = 4095;
inline constexpr std::size_t dimensions = 4;
inline constexpr std::size_t root_objects = 64;  // beside tensors of the root
}  // namespace tensor_file_limits

// Throws Error(usage) where a reader would call the file damaged.
class TensorFileWriter {
 public:
  TensorFileWriter();

  void write_number(const char* name, std::int32_t value);
  void write_numbers(const char* name, const std::vector<std::int64_t>& values);
  void write_numbers(const char* name, const std::vector<float>& values);
  void write_text(const char* name, const std::string& text);
  void write_texts(const char* name, std::span<const std::string> texts);
  // A data set of bytes: an attribute of HDF5 1.8 holds 64 KiB at most.
  void write_long_text(const char* name, const std::string& text);
  // Makes the group, unless it is the root.
  void write_tensors(const char* group, std::span<const ParameterStore::Entry> tensors);

  std::vector<std::byte> image() const;  // the file's bytes

 private:
  Hid<H5Fclose> file_;
};

// How a reader names its file to people: "checkpoint", and what to try when it is damaged.
struct FileKind {
  const char* name;
  const char* advice;
};

// Trusts nothing: every name, type and size is checked against the file's own length before memory is taken. What is
// wrong throws Error(bad_data) naming the file and the object.
class TensorFileReader {
 public:
  // Reads `image`, the bytes of the file `path`; the reader may change them, and they outlive it. HDF5 sees nothing of
  // them before their hash_line() is found right; one of another program's making has none.
  TensorFileReader(FileKind kind, std::string path, std::string& image);

  // Throws Error(bad_data): "<kind> '<path>' is damaged or not a <kind>: <what>. <advice>".
  [[noreturn]] void damaged(const std::string& what) const;
  // Throws Error(bad_data) if the attribute is neither `oldest` nor `newest` nor between them, and says whether an
  // older or a newer version wrote it. The first thing to ask: other versions have other objects.
  void require_format(const char* name, std::int32_t oldest, std::int32_t newest) const;

  bool has_attribute(const char* name) const;
  // T is std::int32_t, std::int64_t or float.
  template <typename T>
  std::vector<T> numbers(const char* name, std::size_t count) const;
  std::vector<std::string> texts(const char* name) const;  // one or more
  std::string long_text(const char* name);
  std::vector<std::int32_t> whole_numbers(const char* name);  // a data set of one dimension
  // Names of the groups beside the root, in name order. Throws Error(bad_data) if one is a link to elsewhere.
  std::vector<std::string> groups() const;
  // In name order, one or more. Only data sets of this file's own: a link may point anywhere on this machine.
  std::vector<ParameterStore::Entry> tensors(const char* group);

 private:
  // Returns `result` unless it is HDF5's sign of failure: that is then the file's. `task` completes "HDF5 could not
  // ...".
  template <typename Result>
  Result checked(Result result, std::string_view task) const {
    if (result < 0) damaged(fmt::format("HDF5 could not {}: {}", task, hdf5_error_message()));
    return result;
  }
  Hid<H5Aclose> attribute(const char* name) const;
  hsize_t attribute_count(hid_t attribute, const char* name) const;
  Hid<H5Oclose> open_own(hid_t location, const std::string& name) const;
  Hid<H5Oclose> open_own(hid_t location, const std::string& name, H5I_type_t type, const char* type_text) const;
  std::string name_at(hid_t group, hsize_t index) const;
  ParameterStore::Entry read_tensor(hid_t group, hsize_t index);
  std::vector<std::int64_t> read_dims(hid_t dataset, const std::string& name, std::size_t element_bytes) const;
  void check_storage(hid_t dataset, const std::string& name, hsize_t bytes);

  FileKind kind_;
  std::string path_;
  hsize_t bytes_;
  hsize_t total_ = 0;  // bytes of tensors so far: two data sets may claim the same place
  Hid<H5Fclose> file_;
};

// Whether the bytes begin as an HDF5 file does.
bool looks_like_hdf5(std::span<const std::byte> bytes);

}  // namespace lockstep
