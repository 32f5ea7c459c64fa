#include "picture/png.hpp"

#include <fmt/format.h>
#include <png.h>

#include <cstdint>
#include <vector>

#include "picture/decode.hpp"

namespace lockstep {
namespace {

// libpng's simplified reader, released however its use ends.
struct PngImage {
  png_image image{};
  PngImage() { image.version = PNG_IMAGE_VERSION; }
  ~PngImage() { png_image_free(&image); }
  PngImage(const PngImage&) = delete;
  PngImage& operator=(const PngImage&) = delete;

  [[noreturn]] void fail() const { throw PictureFault(fmt::format("is damaged ({})", image.message)); }
};

// IHDR is the first chunk, its ninth byte the bits of a channel.
bool has_16_bits(std::span<const std::byte> file) {
  constexpr std::size_t place_of_depth = 24;
  return file.size() > place_of_depth && file[place_of_depth] == std::byte{16};
}

}  // namespace

void decode_png(std::span<const std::byte> file, OwnedPicture& picture, std::string& remark) {
  PngImage png;
  png_image& image = png.image;
  if (png_image_begin_read_from_memory(&image, file.data(), file.size()) == 0) png.fail();
  if (std::int64_t{image.height} * image.width > most_pixels) {
    throw PictureFault(fmt::format("has {} x {} pixels, more than {} in all", image.width, image.height, most_pixels));
  }
  const bool is_transparent = (image.format & PNG_FORMAT_FLAG_ALPHA) != 0;
  image.format = is_transparent ? PNG_FORMAT_RGBA : PNG_FORMAT_RGB;
  image.flags |= PNG_IMAGE_FLAG_16BIT_sRGB;  // as everybody else takes them
  picture.size = {image.height, image.width};
  picture.pixels.resize(PNG_IMAGE_SIZE(image));
  if (png_image_finish_read(&image, nullptr, picture.pixels.data(), 0, nullptr) == 0) png.fail();
  if (is_transparent) {
    const std::size_t pixels = picture.pixels.size() / 4;
    for (std::size_t pixel = 0; pixel < pixels; ++pixel) {
      for (std::size_t channel = 0; channel < 3; ++channel) {
        picture.pixels[pixel * 3 + channel] = picture.pixels[pixel * 4 + channel];
      }
    }
    picture.pixels.resize(pixels * 3);
  }
  remark = has_16_bits(file) ? "has 16 bits a channel" : "";
  if (is_transparent) remark += remark.empty() ? "is transparent" : " and is transparent";
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
