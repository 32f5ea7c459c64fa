#include <array>
#include <cassert>

#include "base/io/hdf5_memory.hpp"
#include "dataset/shards/shard.hpp"
#include "dataset/shards/shard_format.hpp"

namespace lockstep {
namespace {

Hid<H5Dclose> create_dataset(hid_t file, const char* name, hid_t type, std::span<const hsize_t> dims) {
  const Hid<H5Pclose> creation(check_h5(H5Pcreate(H5P_DATASET_CREATE), "make a creation list"));
  check_h5(H5Pset_layout(creation, H5D_CONTIGUOUS), "choose a layout");
  // A date in the file would make equal content differ.
  check_h5(H5Pset_obj_track_times(creation, false), "leave out dates");
  const Hid<H5Sclose> space(
      check_h5(H5Screate_simple(static_cast<int>(dims.size()), dims.data(), nullptr), "describe the samples"));
  return Hid<H5Dclose>(
      check_h5(H5Dcreate2(file, name, type, space, H5P_DEFAULT, creation, H5P_DEFAULT), "create a dataset"));
}

void write_samples(hid_t dataset, hid_t type, const void* values) {
  check_h5(H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values), "write the samples");
}

}  // namespace

std::vector<std::byte> shard_bytes(const SampleShape& shape, std::span<const std::string> classes,
                                   std::span<const std::uint8_t> images, std::span<const std::int32_t> labels) {
  // Page-aligned, so that a sample of a page or less crosses as few pages as it can.
  constexpr hsize_t page_bytes = 4096;
  const std::array<hsize_t, 4> dims = {labels.size(), static_cast<hsize_t>(shape.height),
                                       static_cast<hsize_t>(shape.width), static_cast<hsize_t>(shape.channels)};
  assert(images.size() == dims[0] * dims[1] * dims[2] * dims[3]);

  silence_hdf5();
  const Hid<H5Pclose> access = hdf5_in_memory();
  check_h5(H5Pset_alignment(access, page_bytes, page_bytes), "align the samples");
  const Hid<H5Pclose> creation(check_h5(H5Pcreate(H5P_FILE_CREATE), "make a creation list"));
  check_h5(H5Pset_obj_track_times(creation, false), "leave out dates");
  const Hid<H5Fclose> file(check_h5(H5Fcreate("shard", H5F_ACC_TRUNC, creation, access), "create a shard in memory"));
  hdf5_write_number(file, "format", shard_format::version);
  hdf5_write_texts(file, "classes", classes);
  // Both are created before any sample is written, so that all of HDF5's own structures lie before the samples.
  const Hid<H5Dclose> images_set = create_dataset(file, shard_format::images, H5T_STD_U8LE, dims);
  const Hid<H5Dclose> labels_set = create_dataset(file, shard_format::labels, H5T_STD_I32LE, std::span(dims).first(1));
  write_samples(images_set, H5T_STD_U8LE, images.data());
  write_samples(labels_set, H5T_STD_I32LE, labels.data());
  return hdf5_image(file);
}

}  // namespace lockstep
