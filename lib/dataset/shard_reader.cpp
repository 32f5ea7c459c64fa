#include <array>
#include <cassert>
#include <cstring>
#include <system_error>

#include "base/file.hpp"
#include "base/hdf5.hpp"
#include "dataset/shard.hpp"
#include "dataset/shard_format.hpp"

namespace lockstep {
namespace {

MappedFile map_shard(const std::filesystem::path& path) try {
  return MappedFile(path);
} catch (const std::system_error& reason) {
  throw Error(Failure::bad_data,
              fmt::format("cannot open shard '{}': {} (listed in manifest.json). Re-run make_shards?", path.string(),
                          system_words(reason.code().value())));
}

// One shard while HDF5 has it open. Every check names the file and ends in Error(bad_data).
class OpenShard {
 public:
  explicit OpenShard(const std::filesystem::path& path) : path_(path) {
    silence_hdf5();
    const Hid<H5Pclose> access(check_h5(H5Pcreate(H5P_FILE_ACCESS), "make an access list"));
    // Locks fail on Lustre and NFS, and nobody writes to a shard that stands.
    check_h5(H5Pset_file_locking(access, false, true), "do without file locks");
    file_ = Hid<H5Fclose>(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access));
    require_whole(file_ >= 0, "HDF5 cannot open it: {}", file_ >= 0 ? "" : hdf5_words());
    require_whole(format() == shard_format::version, "its format is not {}", shard_format::version);
  }

  // The offset of a contiguous dataset of this type and shape, all of it inside `file_bytes`.
  std::size_t find(const char* name, hid_t type, std::span<const hsize_t> dims, std::size_t element_bytes,
                   std::size_t file_bytes) const {
    require_whole(H5Lexists(file_, name, H5P_DEFAULT) > 0, "it has no /{}", name);
    const Hid<H5Dclose> dataset(H5Dopen2(file_, name, H5P_DEFAULT));
    require_whole(dataset >= 0, "HDF5 cannot open /{}", name);
    const Hid<H5Tclose> stored_type(H5Dget_type(dataset));
    require_whole(H5Tequal(stored_type, type) > 0, "/{} is not of the type it should be", name);
    require_whole(dims_of(dataset, name, dims.size()) == std::vector(dims.begin(), dims.end()),
                  "/{} does not have the {} samples and the shape that manifest.json says", name, dims[0]);
    const Hid<H5Pclose> creation(H5Dget_create_plist(dataset));
    require_whole(H5Pget_layout(creation) == H5D_CONTIGUOUS && H5Pget_external_count(creation) == 0,
                  "/{} is not stored in one piece", name);

    std::size_t bytes = element_bytes;
    for (const hsize_t extent : dims) {
      require_whole(!__builtin_mul_overflow(bytes, extent, &bytes), "/{} is too large", name);
    }
    const haddr_t offset = H5Dget_offset(dataset);
    require_whole(offset != HADDR_UNDEF && bytes <= file_bytes && offset <= file_bytes - bytes,
                  "/{} reaches beyond the end of the file ({} bytes)", name, file_bytes);
    return offset;
  }

  template <typename... Args>
  void require_whole(bool condition, fmt::format_string<Args...> text, Args&&... args) const {
    if (condition) return;
    throw Error(Failure::bad_data, fmt::format("shard '{}' is damaged: {}. Re-run make_shards, or make_shards verify?",
                                               path_.string(), fmt::format(text, std::forward<Args>(args)...)));
  }

 private:
  std::int32_t format() const {
    std::int32_t value = 0;
    require_whole(H5Aexists(file_, "format") > 0, "it has no attribute 'format'");
    const Hid<H5Aclose> attribute(H5Aopen(file_, "format", H5P_DEFAULT));
    const Hid<H5Sclose> space(H5Aget_space(attribute));
    const Hid<H5Tclose> type(H5Aget_type(attribute));
    const bool one_number = H5Sget_simple_extent_npoints(space) == 1 && H5Tget_class(type) == H5T_INTEGER;
    require_whole(one_number && H5Aread(attribute, H5T_NATIVE_INT32, &value) >= 0,
                  "its attribute 'format' is no number");
    return value;
  }

  std::vector<hsize_t> dims_of(hid_t dataset, const char* name, std::size_t ndim) const {
    const Hid<H5Sclose> space(H5Dget_space(dataset));
    require_whole(H5Sget_simple_extent_ndims(space) == static_cast<int>(ndim), "/{} does not have {} dimensions", name,
                  ndim);
    std::vector<hsize_t> dims(ndim);
    require_whole(H5Sget_simple_extent_dims(space, dims.data(), nullptr) >= 0, "/{} has no shape", name);
    return dims;
  }

  const std::filesystem::path& path_;
  Hid<H5Fclose> file_;
};

}  // namespace

ShardReader::ShardReader(const std::filesystem::path& path, const SampleShape& shape, std::int64_t samples,
                         std::int64_t classes)
    : path_(path),
      file_(map_shard(path)),
      samples_(samples),
      image_bytes_(static_cast<std::size_t>(shape.height * shape.width * shape.channels)) {
  assert(samples > 0 && image_bytes_ > 0);
  const OpenShard shard(path_);
  const std::array<hsize_t, 4> dims = {static_cast<hsize_t>(samples), static_cast<hsize_t>(shape.height),
                                       static_cast<hsize_t>(shape.width), static_cast<hsize_t>(shape.channels)};
  const std::byte* const start = file_.bytes().data();
  const std::size_t bytes = file_.bytes().size();
  images_ =
      reinterpret_cast<const std::uint8_t*>(start + shard.find(shard_format::images, H5T_STD_U8LE, dims, 1, bytes));
  labels_ = start + shard.find(shard_format::labels, H5T_STD_I32LE, std::span(dims).first(1), 4, bytes);
  for (std::int64_t sample = 0; sample < samples; ++sample) {
    const std::int32_t value = label(sample);
    shard.require_whole(value >= 0 && value < classes, "sample {} has label {}, but there are {} classes", sample,
                        value, classes);
  }
}

std::span<const std::uint8_t> ShardReader::image(std::int64_t sample) const {
  assert(sample >= 0 && sample < samples_);
  return {images_ + static_cast<std::size_t>(sample) * image_bytes_, image_bytes_};
}

std::int32_t ShardReader::label(std::int64_t sample) const {
  assert(sample >= 0 && sample < samples_);
  std::int32_t value = 0;
  std::memcpy(&value, labels_ + static_cast<std::size_t>(sample) * sizeof value, sizeof value);
  return value;
}

}  // namespace lockstep
