#include "dataset/pictures/tar_file.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <numeric>
#include <optional>
#include <string_view>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/system_failure.hpp"
#include "base/text/number.hpp"

namespace lockstep {
namespace {

// POSIX.1-2017, pax, "ustar Interchange Format": 512-byte blocks, for each file a header and its padded content.
constexpr std::int64_t block_bytes = 512;
constexpr std::int64_t max_name_bytes = 1 << 16;  // limit of long names and pax records, which have their own blocks
using Block = std::array<char, block_bytes>;

struct Field {
  std::size_t begin;
  std::size_t bytes;
};
constexpr Field name_field{0, 100};
constexpr Field size_field{124, 12};
constexpr Field sum_field{148, 8};
constexpr Field type_field{156, 1};
constexpr Field magic_field{257, 5};
constexpr Field prefix_field{345, 155};

std::string_view bytes_of(const Block& block, const Field& field) { return {block.data() + field.begin, field.bytes}; }

// The text up to the first zero byte.
std::string_view text_of(const Block& block, const Field& field) {
  const std::string_view bytes = bytes_of(block, field);
  return bytes.substr(0, std::min(bytes.find('\0'), bytes.size()));
}

// Octal digits between spaces and zeros, or GNU's base-256 number after a byte of 0x80.
std::optional<std::int64_t> number_of(std::string_view bytes) {
  std::uint64_t number = 0;
  if (!bytes.empty() && static_cast<unsigned char>(bytes.front()) == 0x80) {
    for (const char digit : bytes.substr(1)) {
      if (number >> 55 != 0) return std::nullopt;
      number = number << 8 | static_cast<unsigned char>(digit);
    }
    return static_cast<std::int64_t>(number);
  }
  const std::size_t first = bytes.find_first_not_of(' ');
  if (first == std::string_view::npos) return std::nullopt;
  for (const char digit : bytes.substr(first)) {
    if (digit == ' ' || digit == '\0') break;
    if (digit < '0' || digit > '7') return std::nullopt;
    number = number << 3 | static_cast<std::uint64_t>(digit - '0');
  }
  return static_cast<std::int64_t>(number);
}

// Checksum over all bytes; the checksum field itself counts as spaces.
std::int64_t sum_of(const Block& block) {
  std::int64_t sum = 0;
  for (std::size_t at = 0; at < block.size(); ++at) {
    const bool is_sum = at >= sum_field.begin && at < sum_field.begin + sum_field.bytes;
    sum += is_sum ? ' ' : static_cast<unsigned char>(block[at]);
  }
  return sum;
}

// The value of `key` in concatenated pax records: "21 path=folder/file.jpg\n".
std::optional<std::string> pax_value(std::string_view records, std::string_view key) {
  std::optional<std::string> value;
  while (!records.empty()) {
    const std::size_t space = records.find(' ');
    if (space == std::string_view::npos) break;
    const auto length = parse_number<std::int64_t>(records.substr(0, space), {1, max_name_bytes});
    if (!length || static_cast<std::size_t>(*length) > records.size() ||
        static_cast<std::size_t>(*length) < space + 2) {
      break;
    }
    const std::string_view record =
        records.substr(space + 1, static_cast<std::size_t>(*length) - space - 2);  // without the newline
    if (record.starts_with(key) && record.substr(key.size()).starts_with('=')) value = record.substr(key.size() + 1);
    records = records.substr(static_cast<std::size_t>(*length));
  }
  return value;
}

// Walks through an archive, header by header.
class TarWalk {
 public:
  TarWalk(const TarFile& tar, const std::filesystem::path& path, const ByteRange& part)
      : tar_(tar), path_(path), at_(part.begin), end_(part.begin + part.bytes) {}

  std::vector<TarEntry> entries() {
    std::vector<TarEntry> found;
    // An archive ends with an empty block. An archive that was truncated between two files has none.
    while (true) {
      const Block header = block();
      if (std::ranges::all_of(header, [](char byte) { return byte == '\0'; })) return found;
      require_whole(number_of(bytes_of(header, sum_field)) == sum_of(header), "has no valid file header");
      take(header, found);
    }
  }

 private:
  Block block() const {
    require_whole(end_ - at_ >= block_bytes, "ends before its last block");
    Block bytes{};
    tar_.read(at_, bytes);
    return bytes;
  }

  void take(const Block& header, std::vector<TarEntry>& found) {
    const char type = bytes_of(header, type_field).front();
    const ByteRange content = content_of(header, type);
    switch (type) {
      case 'L':
        next_name_ = text_in(content);
        break;
      case 'x': {
        const std::string records = text_in(content, content.bytes);
        if (const auto path = pax_value(records, "path")) next_name_ = *path;
        if (const auto size = pax_value(records, "size"))
          next_bytes_ = parse_number<std::int64_t>(*size, {0, INT64_MAX});
        break;
      }
      case '0':
      case '\0':
      case '7':
        found.push_back({next_name_.value_or(name_of(header)), content});
        [[fallthrough]];
      default:
        if (type != 'g' && type != 'K') forget();
    }
    at_ = content.begin + (content.bytes + block_bytes - 1) / block_bytes * block_bytes;
  }

  ByteRange content_of(const Block& header, char type) const {
    const bool is_about_the_next = type == 'L' || type == 'x' || type == 'g' || type == 'K';
    const auto stated = next_bytes_ && !is_about_the_next ? next_bytes_ : number_of(bytes_of(header, size_field));
    const std::int64_t bytes = stated.value_or(-1);
    const std::int64_t begin = at_ + block_bytes;
    require_whole(bytes >= 0 && bytes <= end_ - begin, "ends inside a file");
    return {begin, bytes};
  }

  static std::string name_of(const Block& header) {
    const std::string name(text_of(header, name_field));
    const std::string_view prefix = text_of(header, prefix_field);
    const bool has_prefix = bytes_of(header, magic_field) == "ustar" && !prefix.empty();
    return has_prefix ? std::string(prefix) + '/' + name : name;
  }

  std::string text_in(const ByteRange& part, std::int64_t bytes) const {
    require_whole(bytes <= max_name_bytes, "has a name that is too long");
    std::string text(static_cast<std::size_t>(bytes), '\0');
    tar_.read(part.begin, text);
    return text;
  }
  std::string text_in(const ByteRange& part) const {
    std::string text = text_in(part, part.bytes);
    text.resize(std::min(text.find('\0'), text.size()));
    return text;
  }

  void forget() {
    next_name_.reset();
    next_bytes_.reset();
  }

  void require_whole(bool condition, const char* words) const {
    require(condition, Failure::bad_data, "'{}' is damaged: at byte {} it {}. Download it again.", path_.string(), at_,
            words);
  }

  const TarFile& tar_;
  const std::filesystem::path& path_;
  std::int64_t at_;
  std::int64_t end_;
  std::optional<std::string> next_name_;    // name of the next entry, if it did not fit into a header
  std::optional<std::int64_t> next_bytes_;  // size of the next entry, likewise
};

}  // namespace

TarFile::TarFile(std::filesystem::path path) : path_(std::move(path)), file_(open_to_read(path_)) {}

std::vector<TarEntry> TarFile::entries(const ByteRange& part) const { return TarWalk(*this, path_, part).entries(); }

void TarFile::read(std::int64_t offset, std::span<char> bytes) const {
  while (!bytes.empty()) {
    const ssize_t got = ::pread(file_.descriptor(), bytes.data(), bytes.size(), offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      throw system_failure(fmt::format("cannot read '{}'", path_.string()), errno, Access::reading, "--source");
    }
    require(got > 0, Failure::bad_data,
            "'{}' became shorter while it was read. Try again when no other program writes there.", path_.string());
    offset += got;
    bytes = bytes.subspan(static_cast<std::size_t>(got));
  }
}

}  // namespace lockstep
