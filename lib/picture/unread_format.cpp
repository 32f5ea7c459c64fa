#include "picture/unread_format.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace lockstep {
namespace {

using namespace std::string_view_literals;

constexpr std::size_t start_bytes = 1024;  // bytes inspected

struct Format {
  std::string_view name;
  std::string_view conversion;
};

// A format identified by a magic number; some formats need a second mark at a later offset.
struct MarkedFormat {
  Format format;
  std::string_view mark;
  std::size_t second_place = 0;
  std::string_view second_mark = {};
};
constexpr std::array marked_formats = {
    MarkedFormat{{"a WebP", "mogrify -format png *.webp"}, "RIFF", 8, "WEBP"},
    MarkedFormat{{"a GIF", "mogrify -format png *.gif"}, "GIF87a"},
    MarkedFormat{{"a GIF", "mogrify -format png *.gif"}, "GIF89a"},
    MarkedFormat{{"a TIFF", "mogrify -format png *.tif"}, "II*\0"sv},
    MarkedFormat{{"a TIFF", "mogrify -format png *.tif"}, "MM\0*"sv},
    MarkedFormat{{"a TIFF", "mogrify -format png *.tif"}, "II+\0"sv},
    MarkedFormat{{"a TIFF", "mogrify -format png *.tif"}, "MM\0+"sv},
    MarkedFormat{{"a JPEG XL", "djxl NAME.jxl NAME.png"}, "\0\0\0\x0cJXL \r\n\x87\n"sv},
    MarkedFormat{{"a JPEG XL", "djxl NAME.jxl NAME.png"}, "\xff\x0a"},
    MarkedFormat{{"a JPEG 2000", "mogrify -format png *.jp2"}, "\0\0\0\x0cjP  \r\n\x87\n"sv},
    MarkedFormat{{"a JPEG 2000", "mogrify -format png *.jp2"}, "\xff\x4f\xff\x51"},
    MarkedFormat{{"a PSD (Photoshop)", "mogrify -format png *.psd"}, "8BPS"},
    MarkedFormat{{"a PDF", "pdftoppm -png NAME.pdf NAME"}, "%PDF-"},
    MarkedFormat{{"a BMP", "mogrify -format png *.bmp"}, "BM", 6, "\0\0\0\0"sv},
};

bool has_marks(std::string_view start, const MarkedFormat& marked) {
  return start.starts_with(marked.mark) && start.size() > marked.second_place &&
         start.substr(marked.second_place).starts_with(marked.second_mark);
}

// ISO base media files list their compatible brands.
Format media_format(std::string_view start) {
  if (start.size() < 12 || start.substr(4, 4) != "ftyp") return {};
  const std::string_view brands = start.substr(8, 56);
  const auto has = [&](std::string_view brand) { return brands.find(brand) != std::string_view::npos; };
  if (has("avif") || has("avis")) return {"an AVIF", "mogrify -format png *.avif"};
  if (has("heic") || has("heix") || has("hevc") || has("mif1")) return {"a HEIC", "mogrify -format png *.heic"};
  return {};
}

Format format_of(std::string_view start) {
  const auto* const marked =
      std::ranges::find_if(marked_formats, [&](const MarkedFormat& one) { return has_marks(start, one); });
  if (marked != marked_formats.end()) return marked->format;
  const std::size_t text = start.find_first_not_of("\xef\xbb\xbf \t\r\n");
  const bool is_markup = text != std::string_view::npos && start[text] == '<';
  if (is_markup && start.find("<svg") != std::string_view::npos) return {"an SVG", "mogrify -format png *.svg"};
  return media_format(start);
}

}  // namespace

std::string unsupported_format_message(std::span<const std::byte> file) {
  const std::span<const std::byte> head = file.first(std::min(file.size(), start_bytes));
  const Format format = format_of({reinterpret_cast<const char*>(head.data()), head.size()});
  if (format.name.empty()) return {};
  return fmt::format("is {} file, which Lockstep does not read (convert it with: {})", format.name, format.conversion);
}

}  // namespace lockstep
