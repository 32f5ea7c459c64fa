#include "picture/jpeg.hpp"

#include <fmt/format.h>
#include <jpeglib.h>
// jerror.h needs jpeglib.h first.
#include <jerror.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <csetjmp>
#include <cstdlib>
#include <memory>

#include "picture/decode.hpp"
#include "picture/exif.hpp"

namespace lockstep {
namespace {

// Encoders write fewer scans; a small progressive file with thousands of scans keeps a decoder busy for minutes.
constexpr int max_scans = 100;

// libjpeg reports errors through these functions. Errors leave libjpeg by longjmp, as its manual requires: a C++
// exception must not pass through C frames.
struct ErrorManager {
  jpeg_error_mgr base;  // must be the first member: libjpeg sees only this type
  std::jmp_buf jump;
  std::array<char, JMSG_LENGTH_MAX> message;
  bool ends_early;
  bool is_damaged;
};

ErrorManager& manager_of(j_common_ptr info) { return *reinterpret_cast<ErrorManager*>(info->err); }

[[noreturn]] void leave(j_common_ptr info) {
  ErrorManager& manager = manager_of(info);
  info->err->format_message(info, manager.message.data());
  std::longjmp(manager.jump, 1);
}

// Level -1 is a warning: damage that libjpeg skips. Only the first message is kept.
void note(j_common_ptr info, int level) {
  if (level >= 0) return;
  ErrorManager& manager = manager_of(info);
  const int code = info->err->msg_code;
  if (code == JWRN_JPEG_EOF) manager.ends_early = true;
  // Extraneous bytes between segments are harmless.
  if (code == JWRN_EXTRANEOUS_DATA || manager.is_damaged) return;
  manager.is_damaged = true;
  info->err->format_message(info, manager.message.data());
}

void say_nothing(j_common_ptr) {}

jpeg_error_mgr* set_up(ErrorManager& manager) {
  jpeg_std_error(&manager.base);
  manager.base.error_exit = leave;
  manager.base.emit_message = note;
  manager.base.output_message = say_nothing;
  manager.message.front() = '\0';
  manager.ends_early = false;
  manager.is_damaged = false;
  return &manager.base;
}

void bound_scans(j_common_ptr info) {
  if (!info->is_decompressor) return;
  const auto* const decoder = reinterpret_cast<j_decompress_ptr>(info);
  if (decoder->input_scan_number > max_scans) ERREXIT(info, JERR_BAD_PROGRESSION);
}

// Calls libjpeg and converts its errors into exceptions. `calls` must own nothing: longjmp skips its frame.
template <typename Calls>
void guarded(ErrorManager& manager, const Calls& calls) {
  if (setjmp(manager.jump) != 0) {  // NOLINT(cert-err52-cpp): libjpeg's way out
    throw PictureFault(fmt::format("is damaged ({})", manager.message.data()));
  }
  calls();
}

// A JPEG in memory whose header has been read.
class Decoder {
 public:
  explicit Decoder(std::span<const std::byte> file) : Decoder() {
    guarded(errors_, [&] {
      jpeg_save_markers(&info_, JPEG_APP0 + 1, 0xFFFF);
      jpeg_mem_src(&info_, reinterpret_cast<const unsigned char*>(file.data()), file.size());
      jpeg_read_header(&info_, TRUE);
    });
    if (std::int64_t{info_.image_height} * info_.image_width > max_pixels) {
      throw PictureFault(fmt::format("has {} x {} pixels, more than the limit of {}", info_.image_width,
                                     info_.image_height, max_pixels));
    }
  }
  ~Decoder() { jpeg_destroy_decompress(&info_); }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  jpeg_decompress_struct& info() { return info_; }
  ErrorManager& errors() { return errors_; }

  JpegHeader header() const {
    JpegHeader header{{info_.image_height, info_.image_width},
                      info_.progressive_mode != FALSE,
                      info_.jpeg_color_space == JCS_CMYK || info_.jpeg_color_space == JCS_YCCK};
    for (const jpeg_marker_struct* marker = info_.marker_list; marker != nullptr; marker = marker->next) {
      header.orientation = exif_orientation({marker->data, marker->data_length});
      if (header.orientation != 1) break;
    }
    return header;
  }

 private:
  // A delegated constructor, so that the destructor runs if the public constructor throws.
  Decoder() {
    info_.err = set_up(errors_);
    guarded(errors_, [&] { jpeg_create_decompress(&info_); });
    progress_.progress_monitor = bound_scans;
    info_.progress = &progress_;
  }

  jpeg_decompress_struct info_{};
  jpeg_progress_mgr progress_{};
  ErrorManager errors_{};
};

// A JPEG that libjpeg writes into malloc memory.
class Encoder {
 public:
  Encoder() {
    info_.err = set_up(errors_);
    guarded(errors_, [&] {
      jpeg_create_compress(&info_);
      jpeg_mem_dest(&info_, &bytes_, &count_);
    });
  }
  ~Encoder() {
    jpeg_destroy_compress(&info_);
    std::free(bytes_);  // NOLINT(cppcoreguidelines-no-malloc): libjpeg's
  }
  Encoder(const Encoder&) = delete;
  Encoder& operator=(const Encoder&) = delete;

  jpeg_compress_struct& info() { return info_; }
  ErrorManager& errors() { return errors_; }
  std::vector<std::uint8_t> bytes() const { return {bytes_, bytes_ + count_}; }

 private:
  jpeg_compress_struct info_{};
  ErrorManager errors_{};
  unsigned char* bytes_ = nullptr;
  unsigned long count_ = 0;  // NOLINT(google-runtime-int): libjpeg's type
};

// Adobe stores inverted ink values; no other known writer uses four components.
void rgb_of_inverted_cmyk(const std::uint8_t* cmyk, std::int64_t pixels, std::uint8_t* rgb) {
  for (std::int64_t pixel = 0; pixel < pixels; ++pixel) {
    const int black = cmyk[pixel * 4 + 3];
    for (int channel = 0; channel < 3; ++channel) {
      rgb[pixel * 3 + channel] = static_cast<std::uint8_t>((cmyk[pixel * 4 + channel] * black + 127) / 255);
    }
  }
}

}  // namespace

JpegHeader read_jpeg_header(std::span<const std::byte> file) { return Decoder(file).header(); }

void decode_jpeg(std::span<const std::byte> file, OwnedPicture& picture, std::string& remark) {
  Decoder decoder(file);
  jpeg_decompress_struct& info = decoder.info();
  const JpegHeader header = decoder.header();
  picture.size = header.size;
  picture.pixels.resize(static_cast<std::size_t>(header.size.height * header.size.width * 3));
  std::vector<std::uint8_t> inks(header.is_cmyk ? static_cast<std::size_t>(header.size.width * 4) : 0);
  guarded(decoder.errors(), [&] {
    info.out_color_space = header.is_cmyk ? JCS_CMYK : JCS_RGB;
    jpeg_start_decompress(&info);
    while (info.output_scanline < info.output_height) {
      std::uint8_t* const row = picture.pixels.data() + std::int64_t{info.output_scanline} * header.size.width * 3;
      JSAMPROW target = header.is_cmyk ? inks.data() : row;
      jpeg_read_scanlines(&info, &target, 1);
      if (header.is_cmyk) rgb_of_inverted_cmyk(inks.data(), header.size.width, row);
    }
    jpeg_finish_decompress(&info);
  });
  if (decoder.errors().ends_early) throw PictureFault("is truncated");
  remark = decoder.errors().is_damaged ? fmt::format("is damaged inside ({})", decoder.errors().message.data())
                                       : std::string();
}

void decode_jpeg_window(std::span<const std::byte> file, const PictureBox& box, int reduction, OwnedPicture& window) {
  Decoder decoder(file);
  jpeg_decompress_struct& info = decoder.info();
  const auto reduced = [&](JDIMENSION side) { return (std::int64_t{side} + reduction - 1) / reduction; };
  // The header can differ from the stored size if the shard was written wrongly.
  if (box.top + box.size.height > reduced(info.image_height) || box.left + box.size.width > reduced(info.image_width)) {
    throw PictureFault(fmt::format("has {} x {} pixels, fewer than expected", info.image_width, info.image_height));
  }
  window.size = box.size;
  window.pixels.resize(static_cast<std::size_t>(box.size.height * box.size.width * 3));
  // libjpeg decodes whole iMCUs, and chroma upsampling at their edges lacks neighbors from outside. One extra block on
  // each side keeps this error out of the box.
  constexpr std::int64_t margin = 2 * DCTSIZE;
  const std::int64_t right = std::min(box.left + box.size.width + margin, reduced(info.image_width));
  JDIMENSION first = static_cast<JDIMENSION>(std::max<std::int64_t>(box.left - margin, 0));
  JDIMENSION width = static_cast<JDIMENSION>(right) - first;
  std::vector<std::uint8_t> row;
  guarded(decoder.errors(), [&] {
    info.out_color_space = JCS_RGB;
    info.scale_num = 1;
    info.scale_denom = static_cast<unsigned int>(reduction);
    jpeg_start_decompress(&info);
    jpeg_crop_scanline(&info, &first, &width);
  });
  row.resize(std::size_t{width} * 3);
  const std::uint8_t* const inside = row.data() + (box.left - std::int64_t{first}) * 3;
  guarded(decoder.errors(), [&] {
    if (box.top > 0) jpeg_skip_scanlines(&info, static_cast<JDIMENSION>(box.top));
    JSAMPROW target = row.data();
    for (std::int64_t line = 0; line < box.size.height; ++line) {
      jpeg_read_scanlines(&info, &target, 1);
      std::copy_n(inside, box.size.width * 3, window.pixels.data() + line * box.size.width * 3);
    }
    jpeg_abort_decompress(&info);  // the rows below the box are not needed
  });
  if (decoder.errors().ends_early || decoder.errors().is_damaged) {
    throw PictureFault(fmt::format("is damaged ({})", decoder.errors().message.data()));
  }
}

std::vector<std::uint8_t> encode_jpeg(const Picture& picture, int quality) {
  Encoder encoder;
  jpeg_compress_struct& info = encoder.info();
  guarded(encoder.errors(), [&] {
    info.image_height = static_cast<JDIMENSION>(picture.size.height);
    info.image_width = static_cast<JDIMENSION>(picture.size.width);
    info.input_components = 3;
    info.in_color_space = JCS_RGB;
    jpeg_set_defaults(&info);
    jpeg_set_quality(&info, quality, TRUE);
    jpeg_start_compress(&info, TRUE);
    while (info.next_scanline < info.image_height) {
      // libjpeg only reads this memory, but its parameter is not const.
      auto* const row =
          const_cast<std::uint8_t*>(picture.pixels.data()) + std::int64_t{info.next_scanline} * picture.size.width * 3;
      JSAMPROW source = row;
      jpeg_write_scanlines(&info, &source, 1);
    }
    jpeg_finish_compress(&info);
  });
  return encoder.bytes();
}

std::vector<std::uint8_t> sequential_jpeg(std::span<const std::byte> file) {
  Decoder decoder(file);
  Encoder encoder;
  jvirt_barray_ptr* coefficients = nullptr;
  guarded(decoder.errors(), [&] { coefficients = jpeg_read_coefficients(&decoder.info()); });
  guarded(encoder.errors(), [&] {
    jpeg_copy_critical_parameters(&decoder.info(), &encoder.info());
    encoder.info().scan_info = nullptr;
    encoder.info().num_scans = 0;
    // The standard Huffman tables lack codes for some coefficients of progressive files.
    encoder.info().optimize_coding = TRUE;
    jpeg_write_coefficients(&encoder.info(), coefficients);
    jpeg_finish_compress(&encoder.info());
  });
  return encoder.bytes();
}

}  // namespace lockstep
