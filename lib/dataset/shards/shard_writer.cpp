#include <array>
#include <cassert>

#include "base/io/hdf5_memory.hpp"
#include "dataset/shards/hash.hpp"
#include "dataset/shards/shard.hpp"
#include "dataset/shards/shard_format.hpp"

namespace lockstep {
namespace {

Hid<H5Dclose> create_dataset(hid_t file, const char* name, hid_t type, std::span<const hsize_t> dims) {
  const Hid<H5Pclose> creation(check_h5(H5Pcreate(H5P_DATASET_CREATE), "create a property list"));
  check_h5(H5Pset_layout(creation, H5D_CONTIGUOUS), "set a storage layout");
  // Timestamps would make files with equal content differ.
  check_h5(H5Pset_obj_track_times(creation, false), "turn off timestamps");
  const Hid<H5Sclose> space(check_h5(H5Screate_simple(static_cast<int>(dims.size()), dims.data(), nullptr),
                                     "describe the shape of the samples"));
  return Hid<H5Dclose>(
      check_h5(H5Dcreate2(file, name, type, space, H5P_DEFAULT, creation, H5P_DEFAULT), "create a dataset"));
}

void write_samples(hid_t dataset, hid_t type, const void* values) {
  check_h5(H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values), "write the samples");
}

void write_text(hid_t file, const char* name, const std::string& text) {
  hdf5_write_texts(file, name, std::span(&text, 1));
}

void write_numbers(hid_t file, const char* name, hid_t type, std::size_t size, const void* values) {
  const hsize_t count = size;
  const Hid<H5Sclose> space(check_h5(H5Screate_simple(1, &count, nullptr), "describe the shape of an attribute"));
  const Hid<H5Aclose> attribute(
      check_h5(H5Acreate2(file, name, type, space, H5P_DEFAULT, H5P_DEFAULT), "create an attribute"));
  check_h5(H5Awrite(attribute, type, values), "write an attribute");
}

const char* axes_of(SampleStore store) {
  switch (store) {
    case SampleStore::images:
      return "images: sample, height, width, channel";
    case SampleStore::pictures:
      return "samples: of each picture height, width, channel";
    case SampleStore::jpeg:
      break;
  }
  return "samples: a JPEG file of each picture";
}

void write_facts(hid_t file, const ShardFacts& facts) {
  write_text(file, "name", facts.name);
  write_text(file, "split", facts.split);
  write_text(file, "kind", facts.kind == SampleKind::digit ? "digit" : "picture");
  write_text(file, "store", std::string(choice_name(sample_stores, facts.store)));
  write_text(file, "axes", axes_of(facts.store));
  const std::array<std::int64_t, 3> shape = {facts.shape.height, facts.shape.width, facts.shape.channels};
  write_numbers(file, "sample_shape", H5T_STD_I64LE, shape.size(), shape.data());
  write_numbers(file, "shard_mean", H5T_IEEE_F32LE, facts.mean.size(), facts.mean.data());
  write_numbers(file, "shard_deviation", H5T_IEEE_F32LE, facts.deviation.size(), facts.deviation.data());
}

std::vector<std::byte> finished(hid_t file, const std::optional<ShardFacts>& facts) {
  std::vector<std::byte> image = hdf5_image(file);
  if (!facts) return image;
  const std::string line = hash_line(image);
  const auto bytes = std::as_bytes(std::span(line));
  image.insert(image.end(), bytes.begin(), bytes.end());
  return image;
}

Hid<H5Fclose> create_shard(std::int32_t format, std::span<const std::string> classes,
                           const std::optional<ShardFacts>& facts) {
  // Page-aligned, so that small samples cross as few page boundaries as possible.
  constexpr hsize_t page_bytes = 4096;
  silence_hdf5();
  const Hid<H5Pclose> access = hdf5_core_access_plist();
  check_h5(H5Pset_alignment(access, page_bytes, page_bytes), "align the samples");
  const Hid<H5Pclose> creation(check_h5(H5Pcreate(H5P_FILE_CREATE), "create a property list"));
  check_h5(H5Pset_obj_track_times(creation, false), "turn off timestamps");
  Hid<H5Fclose> file(check_h5(H5Fcreate("shard", H5F_ACC_TRUNC, creation, access), "create a shard in memory"));
  hdf5_write_number(file, "format", format);
  hdf5_write_texts(file, "classes", classes);
  if (facts) write_facts(file, *facts);
  return file;
}

}  // namespace

std::vector<std::byte> shard_bytes(const SampleShape& shape, std::span<const std::string> classes,
                                   std::span<const std::uint8_t> images, std::span<const std::int32_t> labels,
                                   const std::optional<ShardFacts>& facts) {
  const std::array<hsize_t, 4> dims = {labels.size(), static_cast<hsize_t>(shape.height),
                                       static_cast<hsize_t>(shape.width), static_cast<hsize_t>(shape.channels)};
  assert(images.size() == dims[0] * dims[1] * dims[2] * dims[3]);
  const Hid<H5Fclose> file = create_shard(1, classes, facts);
  // Both datasets are created before any sample is written, so that all HDF5 structures are before the samples.
  const Hid<H5Dclose> images_set = create_dataset(file, shard_format::images, H5T_STD_U8LE, dims);
  const Hid<H5Dclose> labels_set = create_dataset(file, shard_format::labels, H5T_STD_I32LE, std::span(dims).first(1));
  write_samples(images_set, H5T_STD_U8LE, images.data());
  write_samples(labels_set, H5T_STD_I32LE, labels.data());
  return finished(file, facts);
}

std::int64_t shard_structure_bytes(std::span<const std::string> classes) {
  constexpr std::size_t others_bytes = 1 << 16;  // datasets, other attributes, alignment
  return static_cast<std::int64_t>(hdf5_texts_bytes(classes) + others_bytes);
}

void PictureSamples::add(std::span<const std::uint8_t> sample, const PictureSize& size, std::int32_t label) {
  bytes.insert(bytes.end(), sample.begin(), sample.end());
  offsets.push_back(static_cast<std::int64_t>(bytes.size()));
  sizes.push_back(size);
  labels.push_back(label);
}

std::vector<std::byte> picture_shard_bytes(std::span<const std::string> classes, const PictureSamples& samples,
                                           const std::optional<ShardFacts>& facts) {
  const hsize_t count = samples.labels.size();
  assert(samples.sizes.size() == count && samples.offsets.size() == count + 1);
  std::vector<std::int32_t> sizes;
  sizes.reserve(count * 2);
  for (const PictureSize& size : samples.sizes) {
    sizes.push_back(static_cast<std::int32_t>(size.height));
    sizes.push_back(static_cast<std::int32_t>(size.width));
  }
  const Hid<H5Fclose> file = create_shard(2, classes, facts);
  const auto create = [&](const char* name, hid_t type, const std::vector<hsize_t>& dims) {
    return create_dataset(file, name, type, dims);
  };
  const Hid<H5Dclose> labels_set = create(shard_format::labels, H5T_STD_I32LE, {count});
  const Hid<H5Dclose> offsets_set = create(shard_format::offsets, H5T_STD_I64LE, {count + 1});
  const Hid<H5Dclose> sizes_set = create(shard_format::sizes, H5T_STD_I32LE, {count, 2});
  const Hid<H5Dclose> samples_set = create(shard_format::samples, H5T_STD_U8LE, {samples.bytes.size()});
  // Data are stored in the order of writing, so the datasets that a reader needs first are written first.
  write_samples(labels_set, H5T_NATIVE_INT32, samples.labels.data());
  write_samples(offsets_set, H5T_NATIVE_INT64, samples.offsets.data());
  write_samples(sizes_set, H5T_NATIVE_INT32, sizes.data());
  write_samples(samples_set, H5T_STD_U8LE, samples.bytes.data());
  return finished(file, facts);
}

}  // namespace lockstep
