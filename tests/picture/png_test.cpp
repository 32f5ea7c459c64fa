// What PNG files hold besides plain 8-bit RGB.
#include "picture/png.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <zlib.h>

#include <cctype>

#include "picture/decode.hpp"
#include "picture/exif.hpp"
#include "picture/made_exif.hpp"
#include "picture/made_png.hpp"
#include "support/messages.hpp"

namespace lockstep::test::png_test {

using namespace std::string_literals;
using ::testing::ElementsAre;

DecodedPicture decoded(const std::string& file, const SampleBits& bits = {}) {
  return decode_picture(std::as_bytes(std::span(file)), bits);
}

std::string fault_of(const std::string& file, const SampleBits& bits = {}) {
  try {
    decoded(file, bits);
  } catch (const PictureFault& fault) {
    return fault.what();
  }
  return "no fault";
}

// The red samples, of pictures that are gray.
std::vector<int> grays(const DecodedPicture& picture) {
  std::vector<int> values;
  for (std::size_t at = 0; at < picture.picture.pixels.size(); at += 3) values.push_back(picture.picture.pixels[at]);
  return values;
}

// A gamma of 1 made a picture brighter than every other reader of training data has it.
TEST(Png, chunks_on_colours_change_no_pixel) {
  const std::string row = "\0\x10\x20\x30\x80\x90\xa0"s;
  const std::string chromaticities = big_endian(31270) + big_endian(32900) + big_endian(64000) + big_endian(33000) +
                                     big_endian(30000) + big_endian(60000) + big_endian(15000) + big_endian(6000);
  for (const std::string& chunks :
       {png_chunk("gAMA", big_endian(100000)), png_chunk("gAMA", big_endian(45455)), png_chunk("sRGB", "\0"s),
        png_chunk("gAMA", big_endian(100000)) + png_chunk("cHRM", chromaticities), png_chunk("iCCP", "a profile"),
        png_chunk("bKGD", "\0\x01\0\x02\0\x03"s)}) {
    const DecodedPicture picture = decoded(make_png({2, 1, 8, 2}, row, chunks));
    EXPECT_THAT(picture.picture.pixels, ElementsAre(0x10, 0x20, 0x30, 0x80, 0x90, 0xa0)) << chunks;
    EXPECT_EQ(picture.remark, "");
  }
  EXPECT_THAT(grays(decoded(wide_gray_png({0, 0x8080, 0xffff}, png_chunk("gAMA", big_endian(100000))))),
              ElementsAre(0, 0x80, 0xff));
}

TEST(Png, every_form_of_pixels_becomes_rgb) {
  const std::string gamma = png_chunk("gAMA", big_endian(100000));
  EXPECT_THAT(grays(decoded(make_png({8, 1, 1, 0}, "\0\xa5"s, gamma))), ElementsAre(255, 0, 255, 0, 0, 255, 0, 255));
  EXPECT_THAT(grays(decoded(make_png({4, 1, 2, 0}, "\0\x1b"s, gamma))), ElementsAre(0, 85, 170, 255));
  EXPECT_THAT(grays(decoded(make_png({2, 1, 4, 0}, "\0\x1f"s, gamma))), ElementsAre(17, 255));
  const DecodedPicture with_alpha = decoded(make_png({2, 1, 8, 4}, "\0\x10\x00\x20\xff"s, gamma));
  EXPECT_THAT(grays(with_alpha), ElementsAre(0x10, 0x20));
  EXPECT_EQ(with_alpha.remark, "is transparent");
  const DecodedPicture keyed = decoded(make_png({2, 1, 8, 0}, "\0\x10\x20"s, png_chunk("tRNS", "\0\x10"s)));
  EXPECT_THAT(grays(keyed), ElementsAre(0x10, 0x20));
  EXPECT_EQ(keyed.remark, "is transparent");
  const std::string palette = png_chunk("PLTE", "\x01\x02\x03\x40\x50\x60") + png_chunk("tRNS", "\x00\x80"s);
  const DecodedPicture coloured = decoded(make_png({2, 1, 1, 3}, "\0\x40"s, gamma + palette));
  EXPECT_THAT(coloured.picture.pixels, ElementsAre(1, 2, 3, 0x40, 0x50, 0x60));
  EXPECT_EQ(coloured.remark, "is transparent");
}

TEST(Png, interlaced_rows_are_put_in_order) {
  // Adam7's passes of 3 x 3 pixels: 1, 4, 5, 6 (two rows) and 7.
  const std::string passes = "\0\x01"s + "\0\x03"s + "\0\x07\x09"s + "\0\x02"s + "\0\x08"s + "\0\x04\x05\x06"s;
  EXPECT_THAT(grays(decoded(make_png({3, 3, 8, 0, 1}, passes))), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 9));
}

std::string hexadecimal_profile(const std::string& content) {
  std::string text = fmt::format("\nexif\n{:8}\n", content.size());
  for (std::size_t at = 0; at < content.size(); ++at) {
    text += fmt::format("{:02x}{}", static_cast<std::uint8_t>(content[at]), at % 36 == 35 ? "\n" : "");
  }
  return text + '\n';
}

std::span<const std::uint8_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

// Of a type that is not the standard's, the orientation counted as upright.
TEST(Exif, an_orientation_may_have_any_type_of_whole_numbers_in_any_order_of_bytes) {
  for (const char order : {'I', 'M'}) {
    for (const std::uint32_t type : {1U, 3U, 4U}) {
      EXPECT_EQ(tiff_orientation(bytes_of(exif_orientation_only(6, type, order))), 6) << order << type;
      EXPECT_EQ(exif_orientation(bytes_of("Exif\0\0"s + exif_orientation_only(8, type, order))), 8) << order << type;
      EXPECT_EQ(tiff_orientation(bytes_of(exif_orientation_only(9, type, order))), 1) << order << type;
      EXPECT_EQ(profile_orientation(hexadecimal_profile("Exif\0\0"s + exif_orientation_only(5, type, order))), 5)
          << order << type;
    }
  }
  EXPECT_EQ(tiff_orientation(bytes_of(exif_orientation_only(0x10006, 4, 'M'))), 1);
  EXPECT_EQ(tiff_orientation({}), 1);
  EXPECT_EQ(profile_orientation("\nexif\n  3\n45786"), 1);
  EXPECT_EQ(profile_orientation("\nexif\n  3\n45 no digits"), 1);
  EXPECT_EQ(profile_orientation("exif"), 1);
  std::string capitals = hexadecimal_profile("Exif\0\0"s + exif_orientation_only(5, 3, 'M'));
  std::ranges::transform(capitals, capitals.begin(),
                         [](char letter) { return static_cast<char>(std::toupper(letter)); });
  EXPECT_EQ(profile_orientation(capitals), 5);
}

// EXIF in a PNG did not count at all.
TEST(Png, is_turned_upright_as_its_exif_says) {
  const std::string rows = "\0\x01\x02"s + "\0\x03\x04"s + "\0\x05\x06"s;
  const std::string chunk = png_chunk("eXIf", exif_orientation_only(6, 3, 'M'));
  const std::string text =
      "Raw profile type exif\0"s + hexadecimal_profile("Exif\0\0"s + exif_orientation_only(6, 3, 'I'));
  const PngHeader gray{2, 3, 8, 0};
  for (const std::string& file :
       {make_png(gray, rows, chunk), make_png(gray, rows, {}, chunk), make_png(gray, rows, png_chunk("tEXt", text))}) {
    const DecodedPicture picture = decoded(file);
    EXPECT_EQ(picture.picture.size, (PictureSize{2, 3}));
    EXPECT_THAT(grays(picture), ElementsAre(5, 3, 1, 6, 4, 2));
    EXPECT_EQ(picture.remark, "has EXIF orientation 6");
  }
}

std::int64_t peak_kilobytes() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  return used.ru_maxrss;
}

std::string compressed(std::string_view text) {
  uLongf bytes = compressBound(static_cast<uLong>(text.size()));
  std::string packed(bytes, '\0');
  compress(reinterpret_cast<Bytef*>(packed.data()), &bytes, reinterpret_cast<const Bytef*>(text.data()),
           static_cast<uLong>(text.size()));
  return packed.substr(0, bytes);
}

// They were all decompressed and kept: a file of 1 MB took 1 GB.
TEST(Png, texts_take_no_memory) {
  const std::string exif = hexadecimal_profile("Exif\0\0"s + exif_orientation_only(6, 3, 'I'));
  const std::string blanks = compressed(std::string(std::size_t{4} << 20, ' '));
  std::string texts;
  for (int i = 0; i < 64; ++i) texts += png_chunk("zTXt", "Comment\0\0"s + blanks);
  texts += png_chunk("zTXt", "Raw profile type exif\0\0"s + compressed(exif));
  for (int i = 0; i < 64; ++i) texts += png_chunk("zTXt", "Raw profile type exif\0\0"s + blanks);
  const std::int64_t before = peak_kilobytes();
  for (const std::string& file :
       {make_png({2, 1, 8, 0}, "\0\x01\x02"s, texts), make_png({2, 1, 8, 0}, "\0\x01\x02"s, {}, texts)}) {
    const DecodedPicture picture = decoded(file);
    EXPECT_EQ(picture.picture.size, (PictureSize{2, 1}));
    EXPECT_EQ(picture.remark, "has EXIF orientation 6");
  }
  EXPECT_LT(peak_kilobytes() - before, 64 << 10);
}

TEST(Png, bits_of_samples_are_those_that_are_stated) {
  const std::vector<std::uint16_t> samples{0, 1000, 4095};
  EXPECT_THAT(grays(decoded(wide_gray_png(samples), {12})), ElementsAre(0, 62, 255));
  EXPECT_EQ(decoded(wide_gray_png(samples), {12}).remark, "has 12 bits per channel");
  EXPECT_THAT(grays(decoded(wide_gray_png(samples))), ElementsAre(0, 4, 16));
  EXPECT_EQ(decoded(wide_gray_png(samples)).remark, "has 16 bits per channel");
  expect_message(fault_of(wide_gray_png({0, 4096}), {12}), {"4095"});
}

// As the standard wants samples scaled, and as some writers leave them.
TEST(Png, an_sbit_chunk_says_how_many_bits_count) {
  const std::string twelve = png_chunk("sBIT", "\x0c");
  for (const SampleBits& bits :
       {SampleBits{12}, SampleBits{16, BitPosition::lowest}, SampleBits{16, BitPosition::highest}}) {
    EXPECT_THAT(grays(decoded(wide_gray_png({0, 0x3e83, 0xffff}, twelve), bits)), ElementsAre(0, 62, 255));
    EXPECT_THAT(grays(decoded(wide_gray_png({0, 1000, 4095}, twelve), bits)), ElementsAre(0, 62, 255));
  }
  // 0x0ff0 is 255 of 4095 scaled up to 16 bits, or 4080 of 4095 left in the lowest bits.
  const std::string dark_or_low = wide_gray_png({0, 0x0ff0}, twelve);
  EXPECT_THAT(grays(decoded(dark_or_low, {16, BitPosition::highest})), ElementsAre(0, 16));
  EXPECT_THAT(grays(decoded(dark_or_low, {16, BitPosition::lowest})), ElementsAre(0, 254));
  const auto stated = [](const std::string& file) { return stated_bits_of(std::as_bytes(std::span(file))); };
  EXPECT_EQ(stated(wide_gray_png({5, 7}, twelve)), 12);
  EXPECT_EQ(stated(wide_gray_png({5, 7})), 0);
  EXPECT_EQ(stated(make_png({1, 1, 8, 0}, "\0\x07"s)), std::nullopt);
  const std::string gray = wide_gray_png({5, 7});
  EXPECT_EQ(largest_sample_of(std::as_bytes(std::span(gray))), 7);
  // Of several channels, the largest number counts.
  const std::string colors = make_png({1, 1, 16, 2}, "\0\x0f\xff\0\0\0\0"s, png_chunk("sBIT", "\x0a\x0c\x0b"));
  EXPECT_THAT(decoded(colors).picture.pixels, ElementsAre(255, 0, 0));
}

TEST(Png, what_follows_the_pixels_may_be_damaged) {
  const std::string whole = make_png({2, 1, 8, 0}, "\0\x01\x02"s);
  const DecodedPicture picture = decoded(whole.substr(0, whole.size() - 12));
  EXPECT_THAT(grays(picture), ElementsAre(1, 2));
  expect_message(picture.remark, {"damaged", "truncated"});
  expect_message(fault_of(whole.substr(0, 50)), {});
}

TEST(Png, a_header_that_asks_for_more_than_a_picture_is_refused_before_memory_is_taken) {
  expect_message(fault_of(make_png({900000, 900000, 16, 6}, "")), {"900000"});
}

TEST(UnreadFormats, are_named_with_what_to_do) {
  expect_message(fault_of("RIFF\x10\0\0\0WEBPVP8 "s), {"WebP", "*.webp"});
  expect_message(fault_of("RIFF\x10\0\0\0WAVEfmt "s), {});
  expect_message(fault_of("GIF87a\1\0\1\0"s), {"GIF", "*.gif"});
  expect_message(fault_of("GIF89a\1\0\1\0"s), {"GIF", "*.gif"});
  for (const std::string& file : {"II*\0\x08\0\0\0"s, "MM\0*\0\0\0\x08"s, "II+\0\x08\0\0\0"s, "MM\0+\0\x08\0\0"s}) {
    expect_message(fault_of(file), {"TIFF", "*.tif"});
  }
  expect_message(fault_of("BM\x46\0\0\0\0\0\0\0\x36\0\0\0"s), {"BMP", "*.bmp"});
  expect_message(fault_of("BMW and other texts"), {});
  expect_message(fault_of("\0\0\0\x18"
                          "ftypheic\0\0\0\0mif1heic"s),
                 {"HEIC", "*.heic"});
  expect_message(fault_of("\0\0\0\x1c"
                          "ftypmif1\0\0\0\0mif1avif"s),
                 {"AVIF", "*.avif"});
  expect_message(fault_of("\0\0\0\x18"
                          "ftypisom\0\0\0\0isommp42"s),
                 {});
  expect_message(fault_of("\xff\x0a\x01\x02"), {"JPEG XL", "djxl"});
  expect_message(fault_of("\0\0\0\x0cJXL \r\n\x87\n"s), {"JPEG XL", "djxl"});
  expect_message(fault_of("\0\0\0\x0cjP  \r\n\x87\n"s), {"2000"});
  expect_message(fault_of("\xff\x4f\xff\x51\0\x29"s), {"2000"});
  expect_message(fault_of("8BPS\0\1"s), {"PSD", "*.psd"});
  expect_message(fault_of("%PDF-1.7\n"), {"PDF", "pdftoppm"});
  expect_message(fault_of("\xef\xbb\xbf<?xml version=\"1.0\"?>\n<svg>"), {"SVG", "*.svg"});
  expect_message(fault_of("<svg width=\"2\">"), {"SVG", "*.svg"});
}

}  // namespace lockstep::test::png_test
