#include "picture/png.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <png.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <csetjmp>
#include <cstring>
#include <new>
#include <string_view>
#include <utility>

#include "picture/exif.hpp"

namespace lockstep {
namespace {

// libpng reports errors through this. Errors leave libpng by longjmp: a C++ exception must not pass through C frames.
struct Errors {
  std::jmp_buf jump;
  std::array<char, 128> message;
};

[[noreturn]] void leave(png_structp png, png_const_charp message) {
  auto& errors = *static_cast<Errors*>(png_get_error_ptr(png));
  errors.message.back() = '\0';
  std::strncpy(errors.message.data(), message, errors.message.size() - 1);
  std::longjmp(errors.jump, 1);
}

void ignore_warning(png_structp, png_const_charp) {}

// Keywords of texts with an EXIF profile, as ImageMagick writes them.
bool is_exif_keyword(std::string_view keyword) {
  return keyword == "Raw profile type exif" || keyword == "Raw profile type APP1";
}

// What libpng reads: the file without its text chunks, except for the first one with an EXIF profile. libpng would
// decompress up to 1000 of them, to 8 MB each.
class Input {
 public:
  explicit Input(std::span<const std::byte> file) : unread_(reinterpret_cast<const char*>(file.data()), file.size()) {}

  // libpng reads no further than to the end of a chunk.
  void read(png_structp png, png_bytep to, std::size_t bytes) {
    if (until_chunk_ == 0) until_chunk_ = go_to_used_chunk();
    if (bytes > unread_.size()) png_error(png, "truncated file");
    assert(bytes <= until_chunk_);
    std::memcpy(to, unread_.data(), bytes);
    unread_.remove_prefix(bytes);
    until_chunk_ -= bytes;
  }

 private:
  // Returns the length of the chunk.
  std::size_t go_to_used_chunk() {
    constexpr std::size_t head = 8;    // length of the content, name
    constexpr std::size_t frame = 12;  // also the checksum after the content
    while (unread_.size() >= frame) {
      const std::size_t chunk = frame + png_get_uint_32(reinterpret_cast<png_const_bytep>(unread_.data()));
      const std::string_view name = unread_.substr(4, 4);
      const bool is_text = name == "tEXt" || name == "zTXt" || name == "iTXt";
      if (!is_text || chunk > unread_.size()) return chunk;
      const std::string_view content = unread_.substr(head, chunk - frame);
      const bool has_exif = is_exif_keyword(content.substr(0, content.find('\0')));
      if (has_exif && !std::exchange(has_passed_exif_, true)) return chunk;
      unread_.remove_prefix(chunk);
    }
    return frame;
  }

  std::string_view unread_;
  std::size_t until_chunk_ = 8;  // the signature
  bool has_passed_exif_ = false;
};

void read_input(png_structp png, png_bytep to, std::size_t bytes) {
  static_cast<Input*>(png_get_io_ptr(png))->read(png, to, bytes);
}

// Calls libpng and converts its errors into exceptions. `calls` must own nothing: longjmp skips its frame.
template <typename Calls>
void guarded(Errors& errors, const Calls& calls) {
  if (setjmp(errors.jump) != 0) {  // NOLINT(cert-err52-cpp): libpng's way out
    throw PictureFault(fmt::format("is damaged ({})", errors.message.data()));
  }
  calls();
}

// A PNG in memory whose header has been read.
//
// Samples are used as stored. The chunks gAMA, cHRM, sRGB and iCCP have no effect, as in Pillow, torchvision and
// OpenCV.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> file) : Reader(Input(file)) {
    guarded(errors_, [&] {
      png_set_read_fn(png_, &input_, read_input);
      png_read_info(png_, info_);
    });
    const PictureSize whole = size();
    if (whole.height * whole.width > max_pixels) {
      throw PictureFault(
          fmt::format("has {} x {} pixels, more than the limit of {}", whole.width, whole.height, max_pixels));
    }
  }
  ~Reader() { png_destroy_read_struct(&png_, &info_, nullptr); }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  // The stored format, before read_rgb().
  PictureSize size() const { return {png_get_image_height(png_, info_), png_get_image_width(png_, info_)}; }
  bool is_wide() const { return png_get_bit_depth(png_, info_) == max_sample_bits; }
  bool is_transparent() const {
    return (png_get_color_type(png_, info_) & PNG_COLOR_MASK_ALPHA) != 0 ||
           png_get_valid(png_, info_, PNG_INFO_tRNS) != 0;
  }

  // Significant bits of a sample from the sBIT chunk, which libpng validates; 0 without the chunk.
  int stated_bits() const {
    png_color_8p bits = nullptr;
    if (png_get_sBIT(png_, info_, &bits) == 0) return 0;
    const bool is_gray = (png_get_color_type(png_, info_) & PNG_COLOR_MASK_COLOR) == 0;
    return is_gray ? bits->gray : std::max({bits->red, bits->green, bits->blue});
  }

  // Three samples per pixel, of one byte each, or of two bytes in native byte order.
  void read_rgb(std::span<std::uint8_t> pixels) {
    const PictureSize whole = size();
    const std::size_t row_bytes = pixels.size() / static_cast<std::size_t>(whole.height);
    std::vector<png_bytep> rows;
    for (std::int64_t row = 0; row < whole.height; ++row) {
      rows.push_back(pixels.data() + static_cast<std::size_t>(row) * row_bytes);
    }
    guarded(errors_, [&] {
      png_set_expand(png_);  // palettes, and gray with less than 8 bits
      png_set_gray_to_rgb(png_);
      png_set_strip_alpha(png_);
      if constexpr (std::endian::native == std::endian::little) png_set_swap(png_);
      png_set_interlace_handling(png_);
      png_read_update_info(png_, info_);
      if (png_get_rowbytes(png_, info_) != row_bytes) png_error(png_, "unexpected row size");
      png_read_image(png_, rows.data());
    });
  }

  // Reads the chunks after the pixels. Returns what is wrong with them, or an empty string.
  std::string read_end() {
    try {
      guarded(errors_, [&] { png_read_end(png_, info_); });
      return {};
    } catch (const PictureFault&) {
      return fmt::format("is damaged after the pixel data ({})", errors_.message.data());
    }
  }

  // Call after read_end(): the EXIF chunk may follow the pixels.
  int orientation() const {
    png_uint_32 bytes = 0;
    png_bytep exif = nullptr;
    if (png_get_eXIf_1(png_, info_, &bytes, &exif) != 0) return tiff_orientation({exif, bytes});
    png_textp texts = nullptr;
    int count = 0;
    png_get_text(png_, info_, &texts, &count);
    for (const png_text& text : std::span(texts, static_cast<std::size_t>(count))) {
      if (is_exif_keyword(text.key)) return profile_orientation(text.text);
    }
    return 1;
  }

 private:
  // A delegated constructor, so that the destructor runs if the public constructor throws.
  explicit Reader(const Input& input) : input_(input) {
    guarded(errors_, [&] {
      png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, &errors_, leave, ignore_warning);
      if (png_ != nullptr) info_ = png_create_info_struct(png_);
    });
    if (info_ == nullptr) throw std::bad_alloc();
  }

  Errors errors_{};
  Input input_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
};

std::vector<std::uint16_t> wide_samples(Reader& reader) {
  const PictureSize whole = reader.size();
  std::vector<std::uint16_t> samples(static_cast<std::size_t>(whole.height * whole.width * 3));
  reader.read_rgb({reinterpret_cast<std::uint8_t*>(samples.data()), samples.size() * sizeof(std::uint16_t)});
  return samples;
}

// The PNG standard requires significant bits to be scaled up to all 16 bits. Some writers leave them in the lowest
// bits, and most such values cannot result from scaling. Small values that could are ambiguous: a dark picture, or
// unscaled bits. `place` decides.
int used_bits(std::span<const std::uint16_t> samples, int stated_bits, BitPosition place) {
  const int unused = max_sample_bits - stated_bits;
  const bool fits = std::ranges::all_of(samples, [&](std::uint16_t value) { return value >> stated_bits == 0; });
  const bool may_be_scaled =
      std::ranges::all_of(samples, [&](std::uint16_t value) { return (value & ((1 << unused) - 1)) == 0; });
  return !fits || (may_be_scaled && place == BitPosition::highest) ? max_sample_bits : stated_bits;
}

// Returns the number of significant bits.
int read_wide(Reader& reader, const SampleBits& how, std::span<std::uint8_t> pixels) {
  const int stated = reader.stated_bits();
  const std::vector<std::uint16_t> samples = wide_samples(reader);
  const int bits = stated == 0 ? how.unstated : used_bits(samples, stated, how.stated);
  const std::uint32_t largest = (1U << bits) - 1;
  if (std::ranges::any_of(samples, [&](std::uint16_t value) { return value > largest; })) {
    throw PictureFault(fmt::format("has values above {}, which do not fit into {} bits", largest, bits));
  }
  std::ranges::transform(samples, pixels.begin(), [&](std::uint16_t value) {
    return static_cast<std::uint8_t>((value * 255U + largest / 2) / largest);
  });
  return bits;
}

// libpng's simplified writer, freed on every exit path.
struct PngImage {
  png_image image{};
  PngImage() { image.version = PNG_IMAGE_VERSION; }
  ~PngImage() { png_image_free(&image); }
  PngImage(const PngImage&) = delete;
  PngImage& operator=(const PngImage&) = delete;
};

}  // namespace

void decode_png(std::span<const std::byte> file, const SampleBits& bits, OwnedPicture& picture, std::string& remark) {
  Reader reader(file);
  const bool is_transparent = reader.is_transparent();
  picture.size = reader.size();
  picture.pixels.resize(static_cast<std::size_t>(picture.size.height * picture.size.width * 3));
  std::vector<std::string> remarks;
  if (reader.is_wide()) {
    remarks.push_back(fmt::format("has {} bits per channel", read_wide(reader, bits, picture.pixels)));
  } else {
    reader.read_rgb(picture.pixels);
  }
  if (is_transparent) remarks.emplace_back("is transparent");
  if (std::string damage = reader.read_end(); !damage.empty()) remarks.push_back(std::move(damage));
  const int orientation = reader.orientation();
  turn_upright(picture, orientation);
  if (orientation != 1) remarks.push_back(fmt::format("has EXIF orientation {}", orientation));
  remark = fmt::format("{}", fmt::join(remarks, ", "));
}

std::optional<int> stated_bits_of(std::span<const std::byte> file) {
  const Reader reader(file);
  return reader.is_wide() ? std::optional(reader.stated_bits()) : std::nullopt;
}

int largest_sample_of(std::span<const std::byte> file) {
  Reader reader(file);
  assert(reader.is_wide());
  return std::ranges::max(wide_samples(reader));
}

std::vector<std::uint8_t> encode_png(const Picture& picture) {
  PngImage png;
  png.image.width = static_cast<png_uint_32>(picture.size.width);
  png.image.height = static_cast<png_uint_32>(picture.size.height);
  png.image.format = PNG_FORMAT_RGB;
  png_alloc_size_t bytes = PNG_IMAGE_PNG_SIZE_MAX(png.image);
  std::vector<std::uint8_t> file(bytes);
  const int written = png_image_write_to_memory(&png.image, file.data(), &bytes, 0, picture.pixels.data(), 0, nullptr);
  if (written == 0) throw PictureFault(fmt::format("cannot be written as PNG ({})", png.image.message));
  file.resize(bytes);
  return file;
}

}  // namespace lockstep
