#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "base/io/file.hpp"
#include "base/io/hdf5.hpp"
#include "base/system_failure.hpp"
#include "dataset/shards/hash.hpp"
#include "dataset/shards/repair_advice.hpp"
#include "dataset/shards/shard.hpp"
#include "dataset/shards/shard_format.hpp"

namespace lockstep {
namespace {

[[noreturn]] void throw_unopened(const std::filesystem::path& path, const std::system_error& reason) {
  const std::string task = fmt::format("cannot open shard '{}'", path.string());
  constexpr std::string_view why = "listed in manifest.json";
  const int error_number = reason.code().value();
  require(error_number != ENOENT, Failure::bad_data, "{}: {} ({}). {}", task, system_error_message(error_number), why,
          repair_advice(path, "Run make_shards again."));
  throw system_failure(task, error_number, Access::reading, why);
}

MappedFile map_shard(const std::filesystem::path& path, const RegularFile& file) try {
  return MappedFile(file);
} catch (const std::system_error& reason) {
  throw_unopened(path, reason);
}

// Every failed check names the file and throws Error(bad_data).
template <typename... Args>
void require_whole(bool condition, const std::filesystem::path& path, fmt::format_string<Args...> text,
                   Args&&... args) {
  if (condition) return;
  throw Error(
      Failure::bad_data,
      fmt::format("shard '{}' is damaged: {}. {}", path.string(), fmt::format(text, std::forward<Args>(args)...),
                  repair_advice(path, "Check the data set with make_shards verify, or run make_shards again.")));
}

void require_listed_bytes(const std::filesystem::path& path, std::span<const std::byte> bytes, const ShardEntry& entry,
                          std::int64_t block_bytes) {
  require_whole(bytes.size() == static_cast<std::size_t>(entry.bytes), path,
                "it has {} bytes, but manifest.json says {}", bytes.size(), entry.bytes);
  const std::size_t first_block = std::min(bytes.size(), static_cast<std::size_t>(block_bytes));
  require_whole(!entry.block_hashes.empty() && xxh3_64_hex(bytes.first(first_block)) == entry.block_hashes.front(),
                path, "block 0 of {} changed", entry.block_hashes.size());
}

}  // namespace

RegularFile open_shard(const std::filesystem::path& path) try {
  return RegularFile(path);
} catch (const std::system_error& reason) {
  throw_unopened(path, reason);
}

// A shard while HDF5 has it open.
class ShardReader::File {
 public:
  File(const std::filesystem::path& path, const RegularFile& file, std::int32_t expected_format)
      : path_(path), bytes_(file.bytes()) {
    silence_hdf5();
    file_ = open_hdf5(file);
    require_whole(file_ >= 0, path_, "HDF5 cannot open it: {}", file_ >= 0 ? "" : hdf5_error_message());
    require_whole(format() == expected_format, path_, "its format is not {}", expected_format);
  }

  // File offset of a contiguous dataset with this type and shape; checks that it is inside the file.
  std::size_t find(const char* name, hid_t type, const std::vector<hsize_t>& dims) const {
    require_whole(H5Lexists(file_, name, H5P_DEFAULT) > 0, path_, "it has no /{}", name);
    require_whole(is_hard_link(file_, name), path_, "/{} is a soft or external link", name);
    const Hid<H5Dclose> dataset(H5Dopen2(file_, name, H5P_DEFAULT));
    require_whole(dataset >= 0, path_, "HDF5 cannot open /{}", name);
    require_whole(is_contiguous(dataset), path_, "/{} is not stored contiguously", name);
    const Hid<H5Tclose> stored_type(H5Dget_type(dataset));
    require_whole(H5Tequal(stored_type, type) > 0, path_, "/{} has the wrong type", name);
    require_whole(dims_of(dataset, name, dims.size()) == dims, path_,
                  "/{} does not have the {} samples and the shape that manifest.json states", name, dims[0]);

    std::size_t bytes = H5Tget_size(type);
    for (const hsize_t extent : dims) {
      require_whole(!__builtin_mul_overflow(bytes, extent, &bytes), path_, "/{} is too large", name);
    }
    const haddr_t offset = H5Dget_offset(dataset);
    require_whole(offset != HADDR_UNDEF && bytes <= bytes_ && offset <= bytes_ - bytes, path_,
                  "/{} extends beyond the end of the file ({} bytes)", name, bytes_);
    return offset;
  }

 private:
  std::int32_t format() const {
    std::int32_t value = 0;
    require_whole(H5Aexists(file_, "format") > 0, path_, "it has no attribute 'format'");
    const Hid<H5Aclose> attribute(H5Aopen(file_, "format", H5P_DEFAULT));
    const Hid<H5Sclose> space(H5Aget_space(attribute));
    const Hid<H5Tclose> type(H5Aget_type(attribute));
    const bool one_number = H5Sget_simple_extent_npoints(space) == 1 && H5Tget_class(type) == H5T_INTEGER;
    require_whole(one_number && H5Aread(attribute, H5T_NATIVE_INT32, &value) >= 0, path_,
                  "its attribute 'format' is not a number");
    return value;
  }

  std::vector<hsize_t> dims_of(hid_t dataset, const char* name, std::size_t ndim) const {
    const Hid<H5Sclose> space(H5Dget_space(dataset));
    require_whole(H5Sget_simple_extent_ndims(space) == static_cast<int>(ndim), path_, "/{} does not have {} dimensions",
                  name, ndim);
    std::vector<hsize_t> dims(ndim);
    require_whole(H5Sget_simple_extent_dims(space, dims.data(), nullptr) >= 0, path_, "/{} has no shape", name);
    return dims;
  }

  const std::filesystem::path& path_;
  std::size_t bytes_;
  Hid<H5Fclose> file_;
};

ShardReader::ShardReader(const std::filesystem::path& directory, const Manifest& manifest, const ShardEntry& entry)
    : ShardReader(directory / entry.file, open_shard(directory / entry.file), manifest, entry) {}

ShardReader::ShardReader(std::filesystem::path path, const RegularFile& file, const Manifest& manifest,
                         const ShardEntry& entry)
    : path_(std::move(path)),
      file_(map_shard(path_, file)),
      guard_(path_, file_.bytes()),
      samples_(entry.samples),
      image_size_{manifest.shape.height, manifest.shape.width} {
  assert(samples_ > 0);
  // Reads only this block, because the system's read-ahead around a missing page would read megabytes.
  read_ahead(file_.bytes().first(std::min(file_.bytes().size(), static_cast<std::size_t>(manifest.block_bytes))));
  require_listed_bytes(path_, file_.bytes(), entry, manifest.block_bytes);
  const File shard(path_, file, manifest.format());
  const std::byte* const start = file_.bytes().data();
  labels_ = start + shard.find(shard_format::labels, H5T_STD_I32LE, {static_cast<hsize_t>(samples_)});
  if (manifest.store == SampleStore::images) {
    find_images(shard, manifest);
  } else {
    find_pictures(shard, manifest, entry);
  }
  const auto classes = static_cast<std::int32_t>(manifest.classes.size());
  for (std::int64_t sample = 0; sample < samples_; ++sample) {
    const std::int32_t value = label(sample);
    require_whole(value >= 0 && value < classes, path_, "sample {} has label {}, but labels range from 0 to {}", sample,
                  value, classes - 1);
  }
}

void ShardReader::find_images(const File& shard, const Manifest& manifest) {
  const SampleShape& shape = manifest.shape;
  image_bytes_ = static_cast<std::size_t>(shape.height * shape.width * shape.channels);
  const std::size_t at = shard.find(shard_format::images, H5T_STD_U8LE,
                                    {static_cast<hsize_t>(samples_), static_cast<hsize_t>(shape.height),
                                     static_cast<hsize_t>(shape.width), static_cast<hsize_t>(shape.channels)});
  stored_ = reinterpret_cast<const std::uint8_t*>(file_.bytes().data() + at);
}

void ShardReader::find_pictures(const File& shard, const Manifest& manifest, const ShardEntry& entry) {
  const auto count = static_cast<hsize_t>(samples_);
  const std::byte* const start = file_.bytes().data();
  offsets_ = start + shard.find(shard_format::offsets, H5T_STD_I64LE, {count + 1});
  sizes_ = start + shard.find(shard_format::sizes, H5T_STD_I32LE, {count, 2});
  require_listed_block_hashes(labels_, (count) * sizeof(std::int32_t), entry, manifest.block_bytes);
  require_listed_block_hashes(offsets_, (count + 1) * sizeof(std::int64_t), entry, manifest.block_bytes);
  require_listed_block_hashes(sizes_, count * 2 * sizeof(std::int32_t), entry, manifest.block_bytes);
  const std::int64_t all_bytes = offset(samples_);
  require_whole(offset(0) == 0 && all_bytes >= 0, path_, "its offsets do not start at 0");
  stored_ = reinterpret_cast<const std::uint8_t*>(
      start + shard.find(shard_format::samples, H5T_STD_U8LE, {static_cast<hsize_t>(all_bytes)}));
  for (std::int64_t sample = 0; sample < samples_; ++sample) {
    const PictureSize picture = size(sample);
    const std::int64_t bytes = offset(sample + 1) - offset(sample);
    // Each sample has positive size and the total fits into the file, so no sample exceeds it.
    require_whole(offset(sample + 1) > offset(sample) && offset(sample) >= 0, path_, "sample {} has no bytes", sample);
    require_whole(picture.height > 0 && picture.width > 0 && picture.height <= max_picture_side &&
                      picture.width <= max_picture_side,
                  path_, "sample {} has {} x {} pixels", sample, picture.height, picture.width);
    require_whole(
        manifest.store == SampleStore::jpeg || bytes == picture.height * picture.width * manifest.shape.channels, path_,
        "sample {} of {} x {} pixels has {} bytes", sample, picture.height, picture.width, bytes);
  }
}

void ShardReader::require_listed_block_hashes(const std::byte* from, std::size_t bytes, const ShardEntry& entry,
                                              std::int64_t block_bytes) const {
  const auto block_size = static_cast<std::size_t>(block_bytes);
  const auto first = static_cast<std::size_t>(from - file_.bytes().data()) / block_size;
  const std::size_t end = (static_cast<std::size_t>(from - file_.bytes().data()) + bytes + block_size - 1) / block_size;
  for (std::size_t block = first; block < end; ++block) {
    const std::size_t begin = block * block_size;
    const auto hashed = file_.bytes().subspan(begin, std::min(block_size, file_.bytes().size() - begin));
    require_whole(xxh3_64_hex(hashed) == entry.block_hashes[block], path_, "block {} of {} changed", block,
                  entry.block_hashes.size());
  }
}

std::int64_t ShardReader::offset(std::int64_t sample) const {
  std::int64_t value = 0;
  std::memcpy(&value, offsets_ + static_cast<std::size_t>(sample) * sizeof value, sizeof value);
  return value;
}

std::span<const std::uint8_t> ShardReader::stored(std::int64_t sample) const {
  assert(sample >= 0 && sample < samples_);
  if (offsets_ == nullptr) return {stored_ + static_cast<std::size_t>(sample) * image_bytes_, image_bytes_};
  return {stored_ + offset(sample), static_cast<std::size_t>(offset(sample + 1) - offset(sample))};
}

PictureSize ShardReader::size(std::int64_t sample) const {
  assert(sample >= 0 && sample < samples_);
  if (sizes_ == nullptr) return image_size_;
  std::array<std::int32_t, 2> sides{};
  std::memcpy(sides.data(), sizes_ + static_cast<std::size_t>(sample) * sizeof sides, sizeof sides);
  return {sides[0], sides[1]};
}

std::int32_t ShardReader::label(std::int64_t sample) const {
  std::int32_t value = 0;
  std::memcpy(&value, label_bytes(sample).data(), sizeof value);
  return value;
}

std::span<const std::byte> ShardReader::label_bytes(std::int64_t sample) const {
  assert(sample >= 0 && sample < samples_);
  return {labels_ + static_cast<std::size_t>(sample) * sizeof(std::int32_t), sizeof(std::int32_t)};
}

}  // namespace lockstep
