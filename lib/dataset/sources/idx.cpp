#include <fcntl.h>
#include <zlib.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <memory>
#include <system_error>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/system_failure.hpp"
#include "dataset/sources/sample_source.hpp"

namespace lockstep {
namespace {

constexpr std::size_t file_limit_bytes = std::size_t{1} << 30;

struct GzClose {
  void operator()(gzFile file) const noexcept { gzclose_r(file); }
};

// The file, or the one beside it with .gz, unpacked.
std::string read_idx(const std::filesystem::path& plain) {
  const std::filesystem::path packed = plain.string() + ".gz";
  if (!is_absent(plain) || is_absent(packed)) return read_file(plain, file_limit_bytes);
  const RegularFile regular = open_to_read(packed);
  const int descriptor = ::fcntl(regular.descriptor(), F_DUPFD_CLOEXEC, 0);  // zlib closes its own
  const std::unique_ptr<gzFile_s, GzClose> file(descriptor < 0 ? nullptr : gzdopen(descriptor, "rb"));
  if (file == nullptr) {
    throw system_failure(fmt::format("cannot read '{}'", packed.string()), errno, Access::reading);
  }
  constexpr std::size_t chunk_bytes = 1 << 20;
  std::string bytes;
  for (int got = 1; got > 0;) {
    const std::size_t start = bytes.size();
    bytes.resize(start + chunk_bytes);
    got = gzread(file.get(), bytes.data() + start, chunk_bytes);
    bytes.resize(start + static_cast<std::size_t>(std::max(got, 0)));
    require(bytes.size() <= file_limit_bytes, Failure::bad_data,
            "'{}' unpacks to more than {} bytes (no such file is expected to be). Is it the right file?",
            packed.string(), file_limit_bytes);
  }
  // zlib begins with a name for the descriptor; we say the path.
  int code = Z_OK;
  std::string_view words = gzerror(file.get(), &code);
  const std::string start = fmt::format("<fd:{}>: ", descriptor);
  if (words.starts_with(start)) words.remove_prefix(start.size());
  require(code == Z_OK || code == Z_STREAM_END, Failure::bad_data, "'{}' is damaged: {}. Fetch it again?",
          packed.string(), words);
  return bytes;
}

// An IDX file of bytes (http://yann.lecun.com/exdb/mnist): 0, 0, 8 for bytes, the number of dimensions, then each of
// them in four bytes, the highest first; then the values.
struct IdxFile {
  std::vector<std::size_t> dims;
  std::string bytes;
  std::size_t header_bytes = 0;

  std::uint8_t value(std::size_t at) const { return static_cast<std::uint8_t>(bytes[header_bytes + at]); }
};

IdxFile open_idx(const std::filesystem::path& path, std::size_t ndim) {
  IdxFile file;
  file.bytes = read_idx(path);
  file.header_bytes = 4 + 4 * ndim;
  const std::string magic = {0, 0, 8, static_cast<char>(ndim)};
  require(file.bytes.size() >= file.header_bytes && file.bytes.starts_with(magic), Failure::bad_data,
          "'{}' is no IDX file of bytes in {} dimensions. Is it the right file?", path.string(), ndim);
  std::size_t expected = 1;
  for (std::size_t dim = 0; dim < ndim; ++dim) {
    std::size_t extent = 0;
    for (std::size_t i = 0; i < 4; ++i) extent = extent << 8 | static_cast<std::uint8_t>(file.bytes[4 + dim * 4 + i]);
    const bool sane =
        extent > 0 && !__builtin_mul_overflow(expected, extent, &expected) && expected <= file_limit_bytes;
    require(sane, Failure::bad_data, "'{}' claims an impossible size ({} in dimension {}). Fetch it again?",
            path.string(), extent, dim);
    file.dims.push_back(extent);
  }
  const std::size_t found = file.bytes.size() - file.header_bytes;
  require(found == expected, Failure::bad_data, "'{}' holds {} values, but its header says {}. Fetch it again?",
          path.string(), found, expected);
  return file;
}

class IdxSource final : public SampleSource {
 public:
  IdxSource(const std::filesystem::path& directory, SourceDescription description)
      : description_(std::move(description)) {
    std::error_code reason;
    require(std::filesystem::is_directory(directory, reason), Failure::usage,
            "'{}' is not a directory (--source). Name the folder that holds train-images-idx3-ubyte.",
            directory.string());
    description_.source =
        fmt::format("{} (IDX files) from {}", description_.name, std::filesystem::weakly_canonical(directory).string());
    train_ = open_part(directory, "train");
    test_ = open_part(directory, "t10k");
    const std::vector<std::size_t>& dims = train_.images.dims;
    require(dims[1] == test_.images.dims[1] && dims[2] == test_.images.dims[2], Failure::bad_data,
            "the training and the test images in '{}' differ in size. Are they from one data set?", directory.string());
    description_.shape = {static_cast<std::int64_t>(dims[1]), static_cast<std::int64_t>(dims[2]), 1};
  }

  const SourceDescription& description() const override { return description_; }
  std::int64_t samples(SourceSplit split) const override {
    return static_cast<std::int64_t>(part(split).images.dims[0]);
  }

  std::optional<std::int32_t> read(SourceSplit split, std::int64_t index, SourceSample& sample) const override {
    OwnedPicture& picture = sample.picture;
    assert(index >= 0 && index < samples(split));
    const Part& from = part(split);
    const auto at = static_cast<std::size_t>(index);
    picture.size = {description_.shape.height, description_.shape.width};
    picture.pixels.resize(static_cast<std::size_t>(picture.size.height * picture.size.width));
    for (std::size_t pixel = 0; pixel < picture.pixels.size(); ++pixel) {
      picture.pixels[pixel] = from.images.value(at * picture.pixels.size() + pixel);
    }
    return from.labels.value(at);
  }

 private:
  struct Part {
    IdxFile images;
    IdxFile labels;
  };
  const Part& part(SourceSplit split) const { return split == SourceSplit::train ? train_ : test_; }

  Part open_part(const std::filesystem::path& directory, const std::string& name) const {
    const std::filesystem::path labels = directory / (name + "-labels-idx1-ubyte");
    Part opened = {open_idx(directory / (name + "-images-idx3-ubyte"), 3), open_idx(labels, 1)};
    require(opened.images.dims[0] == opened.labels.dims[0], Failure::bad_data,
            "'{}' has {} labels for {} images. Fetch both again?", labels.string(), opened.labels.dims[0],
            opened.images.dims[0]);
    for (std::size_t sample = 0; sample < opened.labels.dims[0]; ++sample) {
      const std::uint8_t label = opened.labels.value(sample);
      require(label < description_.classes.size(), Failure::bad_data,
              "sample {} of '{}' has label {}, but there are {} classes. Fetch it again?", sample, labels.string(),
              label, description_.classes.size());
    }
    return opened;
  }

  SourceDescription description_;
  Part train_;
  Part test_;
};

}  // namespace

std::unique_ptr<SampleSource> open_mnist(const std::filesystem::path& directory) {
  SourceDescription description = {"mnist", "", {}, SampleKind::digit, {}};
  for (int digit = 0; digit < 10; ++digit) description.classes.push_back(fmt::format("{}", digit));
  return std::make_unique<IdxSource>(directory, std::move(description));
}

std::unique_ptr<SampleSource> open_fashion_mnist(const std::filesystem::path& directory) {
  return std::make_unique<IdxSource>(
      directory, SourceDescription{"fashion_mnist",
                                   "",
                                   {},
                                   SampleKind::picture,
                                   {"T-shirt/top", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker",
                                    "bag", "ankle boot"}});
}

}  // namespace lockstep
