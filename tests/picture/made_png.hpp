// PNG files chunk by chunk, as other programs write them.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::test {

inline std::string big_endian(std::uint32_t number) {
  std::string bytes;
  for (const int shift : {24, 16, 8, 0}) bytes += static_cast<char>(number >> shift);
  return bytes;
}

inline std::string png_chunk(std::string_view name, std::string_view content) {
  const std::string marked = std::string(name) + std::string(content);
  const auto sum = crc32(0, reinterpret_cast<const Bytef*>(marked.data()), static_cast<uInt>(marked.size()));
  return big_endian(static_cast<std::uint32_t>(content.size())) + marked + big_endian(static_cast<std::uint32_t>(sum));
}

struct PngHeader {
  std::uint32_t width;
  std::uint32_t height;
  char depth;
  char color;  // 0 gray, 2 RGB, 3 palette, 4 gray and alpha, 6 RGBA
  char interlace = 0;
};

// `rows` are the scanlines, each with its filter byte. `before` and `after` are chunks around the pixels.
inline std::string make_png(const PngHeader& header, std::string_view rows, std::string_view before = {},
                            std::string_view after = {}) {
  uLongf bytes = compressBound(static_cast<uLong>(rows.size()));
  std::string packed(bytes, '\0');
  compress(reinterpret_cast<Bytef*>(packed.data()), &bytes, reinterpret_cast<const Bytef*>(rows.data()),
           static_cast<uLong>(rows.size()));
  packed.resize(bytes);
  const std::string form{header.depth, header.color, 0, 0, header.interlace};
  return "\x89PNG\r\n\x1a\n" + png_chunk("IHDR", big_endian(header.width) + big_endian(header.height) + form) +
         std::string(before) + png_chunk("IDAT", packed) + std::string(after) + png_chunk("IEND", "");
}

// One row of 16-bit gray.
inline std::string wide_gray_png(const std::vector<std::uint16_t>& samples, std::string_view before = {}) {
  std::string row(1, '\0');
  for (const std::uint16_t value : samples) row += {static_cast<char>(value >> 8), static_cast<char>(value)};
  return make_png({static_cast<std::uint32_t>(samples.size()), 1, 16, 0}, row, before);
}

}  // namespace lockstep::test
