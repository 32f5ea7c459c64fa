#include "files/logits_file.hpp"

#include <array>
#include <cassert>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/io/hdf5_memory.hpp"
#include "base/io/mapped_file.hpp"
#include "files/import/hdf5_tensors.hpp"
#include "files/result_file.hpp"
#include "files/tensor_file.hpp"

namespace lockstep {
namespace {

constexpr const char* logits_name = "logits";

bool begins_as_hdf5(std::string_view start) { return looks_like_hdf5(std::as_bytes(std::span(start))); }

// Does not use the HDF5 library, which must not read untrusted files.
bool holds_logits(const std::filesystem::path& path) try {
  const MappedFile mapped(open_to_read(path));
  const WeightBytes file(path.string(), {reinterpret_cast<const char*>(mapped.bytes().data()), mapped.bytes().size()});
  return has_root_member(file, logits_name);
} catch (const Error&) {
  return false;
}

void write_values(hid_t file, const char* name, hid_t type, std::span<const hsize_t> dims, const void* values) {
  const Hid<H5Pclose> creation(check_h5(H5Pcreate(H5P_DATASET_CREATE), "create a property list"));
  check_h5(H5Pset_obj_track_times(creation, false), "turn off timestamps");
  const Hid<H5Sclose> space(check_h5(H5Screate_simple(static_cast<int>(dims.size()), dims.data(), nullptr),
                                     "describe the shape of a dataset"));
  const Hid<H5Dclose> dataset(
      check_h5(H5Dcreate2(file, name, type, space, H5P_DEFAULT, creation, H5P_DEFAULT), "create a dataset"));
  check_h5(H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values), "write a dataset");
}

}  // namespace

void require_place_for_logits(const std::filesystem::path& file) {
  constexpr const char* option = "--logits";
  constexpr const char* kind = "file of logits";
  require_place_for_result(file, {kind, begins_as_hdf5}, option);
  require(is_absent(file) || holds_logits(file), Failure::usage,
          "'{}' exists and is not a {}. Lockstep does not overwrite it. Choose another file for {}.", file.string(),
          kind, option);
}

std::vector<std::byte> logits_image(std::span<const float> logits, std::span<const std::int32_t> labels,
                                    std::span<const std::string> classes, const LogitsOrigin& origin) {
  assert(logits.size() == labels.size() * classes.size());
  const std::array<hsize_t, 2> dims = {labels.size(), classes.size()};
  const Hid<H5Pclose> access = hdf5_core_access_plist();
  const Hid<H5Fclose> file(
      check_h5(H5Fcreate("logits", H5F_ACC_TRUNC, H5P_DEFAULT, access), "create a file in memory"));
  write_values(file, logits_name, H5T_IEEE_F32LE, dims, logits.data());
  write_values(file, "labels", H5T_STD_I32LE, std::span(dims).first(1), labels.data());
  hdf5_write_texts(file, "classes", classes);
  hdf5_write_texts(file, "model", std::span(&origin.model, 1));
  hdf5_write_texts(file, "weights_hash", std::span(&origin.weights_hash, 1));
  hdf5_write_texts(file, "data", std::span(&origin.data, 1));
  hdf5_write_texts(file, "split", std::span(&origin.split, 1));
  hdf5_write_texts(file, "test_augment", std::span(&origin.test_augment, 1));
  return hdf5_image(file);
}

}  // namespace lockstep
