#include "dataset/sources/idx_file.hpp"

#include <fcntl.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string_view>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/system_failure.hpp"

namespace lockstep {
namespace {

using namespace std::string_view_literals;

constexpr std::size_t values_limit_bytes = std::size_t{1} << 30;
constexpr std::size_t number_bytes = 4;
constexpr std::size_t qmnist_columns = 8;
constexpr std::string_view bytes_in_3_dimensions = "\0\0\x08\x03"sv;
constexpr std::string_view bytes_in_1_dimension = "\0\0\x08\x01"sv;
constexpr std::string_view numbers_in_2_dimensions = "\0\0\x0c\x02"sv;

struct GzClose {
  void operator()(gzFile file) const noexcept { gzclose_r(file); }
};

// Reads a file sequentially. zlib passes uncompressed files through.
class Unpacker {
 public:
  explicit Unpacker(const std::filesystem::path& plain) : path_(plain) {
    const std::filesystem::path packed = plain.string() + ".gz";
    if (is_absent(plain) && !is_absent(packed)) path_ = packed;
    const RegularFile regular = open_to_read(path_);
    file_bytes_ = regular.bytes();
    descriptor_ = ::fcntl(regular.descriptor(), F_DUPFD_CLOEXEC, 0);  // zlib closes its own descriptor
    file_.reset(descriptor_ < 0 ? nullptr : gzdopen(descriptor_, "rb"));
    if (file_ == nullptr) throw system_failure(fmt::format("cannot read '{}'", path()), errno, Access::reading);
  }

  std::string path() const { return path_.string(); }

  // Returns fewer bytes at the end of the file.
  std::string read(std::size_t max_bytes) const {
    constexpr std::size_t chunk_bytes = std::size_t{1} << 20;
    constexpr std::size_t max_unpacked_of_a_byte = 1032;  // maximum compression ratio of deflate
    std::string bytes;
    bytes.reserve(std::min(max_bytes, (file_bytes_ + 1) * max_unpacked_of_a_byte));
    while (bytes.size() < max_bytes) {
      const std::size_t start = bytes.size();
      const std::size_t wanted = std::min(chunk_bytes, max_bytes - start);
      bytes.resize(start + wanted);
      const int got = gzread(file_.get(), bytes.data() + start, static_cast<unsigned int>(wanted));
      bytes.resize(start + static_cast<std::size_t>(std::max(got, 0)));
      if (got <= 0) break;
    }
    require_whole();
    return bytes;
  }

 private:
  void require_whole() const {
    // zlib's message begins with the descriptor; ours names the path.
    int code = Z_OK;
    std::string_view message = gzerror(file_.get(), &code);
    const std::string start = fmt::format("<fd:{}>: ", descriptor_);
    if (message.starts_with(start)) message.remove_prefix(start.size());
    require(code == Z_OK || code == Z_STREAM_END, Failure::bad_data, "'{}' is damaged: {}. Download it again.", path(),
            message);
  }

  std::filesystem::path path_;
  std::size_t file_bytes_ = 0;
  int descriptor_ = -1;
  std::unique_ptr<gzFile_s, GzClose> file_;
};

std::size_t big_endian(std::string_view bytes) {
  std::size_t number = 0;
  for (const char byte : bytes) number = number << 8 | static_cast<std::uint8_t>(byte);
  return number;
}

// Call after the first four bytes, which contain the type and the number of dimensions.
IdxFile read_rest(const Unpacker& file, std::size_t dimensions, std::size_t value_bytes) {
  IdxFile read;
  const std::string header = file.read(number_bytes * dimensions);
  require(header.size() == number_bytes * dimensions, Failure::bad_data,
          "'{}' ends inside its header. Download it again.", file.path());
  std::size_t expected = 1;
  for (std::size_t dimension = 0; dimension < dimensions; ++dimension) {
    const std::size_t extent = big_endian(std::string_view(header).substr(dimension * number_bytes, number_bytes));
    const bool is_possible = extent > 0 && !__builtin_mul_overflow(expected, extent, &expected) &&
                             expected <= values_limit_bytes / value_bytes;
    require(is_possible, Failure::bad_data, "'{}' states an impossible size ({} in dimension {}). Download it again.",
            file.path(), extent, dimension);
    read.dims.push_back(extent);
  }
  read.values = file.read(expected * value_bytes + 1);
  const std::size_t found = read.values.size() / value_bytes;
  require(found >= expected, Failure::bad_data, "'{}' contains {} values, but its header states {}. Download it again.",
          file.path(), found, expected);
  require(read.values.size() == expected * value_bytes, Failure::bad_data,
          "'{}' continues after the {} values that its header states. Download it again.", file.path(), expected);
  return read;
}

// The class is the first number of each row.
IdxFile first_column(IdxFile table, const std::string& path) {
  require(table.dims[1] == qmnist_columns, Failure::bad_data,
          "'{}' has {} numbers per label, but QMNIST has {}. Check that it is the right file.", path, table.dims[1],
          qmnist_columns);
  IdxFile labels{{table.dims[0]}, {}};
  for (std::size_t row = 0; row < table.dims[0]; ++row) {
    const std::size_t at = row * qmnist_columns * number_bytes;
    const std::size_t label = big_endian(std::string_view(table.values).substr(at, number_bytes));
    require(label < 256, Failure::bad_data,
            "sample {} of '{}' has label {}, but the largest possible label is 255. Download the file again.", row,
            path, label);
    labels.values += static_cast<char>(label);
  }
  return labels;
}

[[noreturn]] void refuse_form(const Unpacker& file, std::string_view magic, int dimensions) {
  require(!magic.starts_with("\x93NUM"), Failure::bad_data,
          "'{}' is a NumPy array (.npy), not an IDX file. Download the IDX file.", file.path());
  throw Error(Failure::bad_data,
              fmt::format("'{}' is not an IDX file of bytes in {} dimensions. Check that it is the right file.",
                          file.path(), dimensions));
}

}  // namespace

IdxFile read_idx_images(const std::filesystem::path& plain) {
  const Unpacker file(plain);
  const std::string magic = file.read(bytes_in_3_dimensions.size());
  if (magic != bytes_in_3_dimensions) refuse_form(file, magic, 3);
  return read_rest(file, 3, 1);
}

IdxFile read_idx_labels(const std::filesystem::path& plain) {
  const Unpacker file(plain);
  const std::string magic = file.read(bytes_in_1_dimension.size());
  if (magic == numbers_in_2_dimensions) return first_column(read_rest(file, 2, number_bytes), file.path());
  if (magic != bytes_in_1_dimension) refuse_form(file, magic, 1);
  return read_rest(file, 1, 1);
}

}  // namespace lockstep
