#include "picture/decode.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "picture/exif.hpp"
#include "picture/golden_pictures.hpp"
#include "picture/jpeg.hpp"
#include "picture/png.hpp"
#include "support/messages.hpp"
#include "support/samples/smooth_picture.hpp"

namespace lockstep::test::decode_test {

using ::testing::HasSubstr;

struct Kind {
  const char* name;
  bool is_plain;
  bool is_progressive;
  const char* remark;
};

void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }

int largest_difference(const Picture& a, const Picture& b) {
  int largest = 0;
  for (std::size_t at = 0; at < a.pixels.size(); ++at) {
    largest = std::max(largest, std::abs(int{a.pixels[at]} - int{b.pixels[at]}));
  }
  return largest;
}

double pixel_at(const Picture& picture, std::int64_t y, std::int64_t x) {
  return picture.pixels[static_cast<std::size_t>((y * picture.size.width + x) * 3)];
}

std::string fault_of(std::span<const std::byte> file) {
  try {
    decode_picture(file);
  } catch (const PictureFault& fault) {
    return fault.what();
  }
  return "no fault";
}

class DecodeTest : public ::testing::TestWithParam<Kind> {};

TEST_P(DecodeTest, every_kind_of_file_is_what_pillow_sees) {
  const GoldenPictures golden;
  const DecodedPicture decoded = decode_picture(golden.file(GetParam().name));
  const OwnedPicture expected = golden.decoded(GetParam().name);
  ASSERT_EQ(decoded.picture.size, expected.size);
  EXPECT_LE(largest_difference(decoded.picture, expected), 1);
  EXPECT_EQ(decoded.is_plain_jpeg, GetParam().is_plain);
  EXPECT_EQ(decoded.is_progressive_jpeg, GetParam().is_progressive);
  EXPECT_EQ(decoded.remark, GetParam().remark);
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, DecodeTest,
    ::testing::Values(Kind{"jpeg", true, false, ""}, Kind{"jpeg_444", true, false, ""},
                      Kind{"jpeg_gray", true, false, ""}, Kind{"jpeg_cmyk", false, false, "is CMYK"},
                      Kind{"jpeg_progressive", false, true, ""}, Kind{"jpeg_exif_1", true, false, ""},
                      Kind{"jpeg_exif_2", false, false, "has EXIF orientation 2"},
                      Kind{"jpeg_exif_3", false, false, "has EXIF orientation 3"},
                      Kind{"jpeg_exif_4", false, false, "has EXIF orientation 4"},
                      Kind{"jpeg_exif_5", false, false, "has EXIF orientation 5"},
                      Kind{"jpeg_exif_6", false, false, "has EXIF orientation 6"},
                      Kind{"jpeg_exif_7", false, false, "has EXIF orientation 7"},
                      Kind{"jpeg_exif_8", false, false, "has EXIF orientation 8"}, Kind{"png", false, false, ""},
                      Kind{"png_gray", false, false, ""}, Kind{"png_palette", false, false, ""},
                      Kind{"png_transparent", false, false, "is transparent"}, Kind{"png_bits", false, false, ""}));

TEST(DecodeFaults, a_file_that_ends_too_early_is_no_picture) {
  std::vector<std::byte> file = GoldenPictures().file("jpeg");
  file.resize(file.size() * 2 / 3);
  expect_message(fault_of(file), {"truncated"});
  file = GoldenPictures().file("png");
  file.resize(file.size() / 2);
  expect_message(fault_of(file), {"damaged"});
}

TEST(DecodeFaults, what_is_no_picture_is_named) {
  expect_message(fault_of({}), {"empty"});
  const std::string_view text = "<html>not found</html>";
  expect_message(fault_of(std::as_bytes(std::span(text))), {});
}

TEST(DecodeFaults, damage_in_the_middle_is_a_remark) {
  std::vector<std::byte> file = GoldenPictures().file("jpeg");
  const std::size_t middle = file.size() * 3 / 4;
  std::fill_n(file.begin() + static_cast<std::ptrdiff_t>(middle), 8, std::byte{0});
  file[middle] = std::byte{0xFF};
  file[middle + 1] = std::byte{0xD0};  // a restart marker where there are none
  const DecodedPicture decoded = decode_picture(file);
  EXPECT_THAT(decoded.remark, HasSubstr("damaged"));
  EXPECT_FALSE(decoded.is_plain_jpeg);
}

TEST(DecodeFaults, a_header_that_asks_for_more_than_a_picture_is_refused_before_memory_is_taken) {
  std::vector<std::byte> file = GoldenPictures().file("jpeg");
  // SOF0: marker, length, precision, then height and width of two bytes each.
  for (std::size_t at = 0; at + 9 < file.size(); ++at) {
    if (file[at] != std::byte{0xFF} || file[at + 1] != std::byte{0xC0}) continue;
    std::fill_n(file.begin() + static_cast<std::ptrdiff_t>(at) + 5, 4, std::byte{0xF0});
    break;
  }
  EXPECT_THAT(fault_of(file), HasSubstr(" 178956970"));
}

TEST(Png, what_is_written_is_read_again) {
  const OwnedPicture picture = smooth_picture({13, 17}, 4);
  const std::vector<std::uint8_t> file = encode_png(picture);
  const DecodedPicture decoded = decode_picture(std::as_bytes(std::span(file)));
  EXPECT_EQ(decoded.picture.size, picture.size);
  EXPECT_EQ(decoded.picture.pixels, picture.pixels);
  EXPECT_EQ(decoded.remark, "");
}

// Of every place at which a block may be cut.
TEST(JpegWindow, is_the_same_part_of_the_whole_picture) {
  const GoldenPictures golden;
  for (const char* const name : {"jpeg", "jpeg_444", "jpeg_gray"}) {
    const std::vector<std::byte> file = golden.file(name);
    const OwnedPicture whole = decode_picture(file).picture;
    OwnedPicture window;
    OwnedPicture expected;
    for (std::int64_t top = 0; top < whole.size.height; top += 3) {
      for (std::int64_t left = 0; left < whole.size.width; left += 2) {
        const PictureBox box{
            top,
            left,
            {std::min<std::int64_t>(9, whole.size.height - top), std::min<std::int64_t>(11, whole.size.width - left)}};
        decode_jpeg_window(file, box, 1, window);
        resize(whole, {box, box.size}, expected);
        ASSERT_EQ(window.size, box.size);
        ASSERT_EQ(window.pixels, expected.pixels) << name << " at " << top << ", " << left;
      }
    }
  }
}

// Each pixel of a reduced picture stands for a square of the whole one.
TEST(JpegWindow, of_a_reduced_picture_is_the_same_part_and_near_the_means_of_squares) {
  const std::vector<std::uint8_t> bytes = encode_jpeg(smooth_picture({101, 150}, 3), 95);
  const auto file = std::as_bytes(std::span(bytes));
  const OwnedPicture whole = decode_picture(file).picture;
  for (const int reduction : {2, 4, 8}) {
    const PictureSize size{(101 + reduction - 1) / reduction, (150 + reduction - 1) / reduction};
    OwnedPicture reduced;
    decode_jpeg_window(file, {0, 0, size}, reduction, reduced);
    double difference = 0;
    for (std::int64_t y = 0; y < 101 / reduction; ++y) {
      for (std::int64_t x = 0; x < 150 / reduction; ++x) {
        double sum = 0;
        for (std::int64_t i = 0; i < reduction * reduction; ++i) {
          sum += pixel_at(whole, y * reduction + i / reduction, x * reduction + i % reduction);
        }
        difference += std::abs(sum / (reduction * reduction) - pixel_at(reduced, y, x));
      }
    }
    EXPECT_LT(difference / static_cast<double>(size.height * size.width), 3) << reduction;
    OwnedPicture window;
    OwnedPicture expected;
    for (std::int64_t top = 0; top + 5 <= size.height; top += 2) {
      for (std::int64_t left = 0; left + 6 <= size.width; left += 3) {
        const PictureBox box{top, left, {5, 6}};
        decode_jpeg_window(file, box, reduction, window);
        resize(reduced, {box, box.size}, expected);
        ASSERT_EQ(window.pixels, expected.pixels) << reduction << " at " << top << ", " << left;
      }
    }
  }
}

TEST(JpegWindow, of_a_smaller_file_than_promised_is_a_fault) {
  OwnedPicture window;
  EXPECT_THAT(
      [&] {
        decode_jpeg_window(GoldenPictures().file("jpeg"), {0, 0, {9000, 20}}, 1, window);
      },
      ::testing::ThrowsMessage<PictureFault>(HasSubstr(" pixels")));
}

TEST(JpegWindow, of_a_file_that_ends_too_early_is_a_fault) {
  std::vector<std::byte> file = GoldenPictures().file("jpeg");
  file.resize(file.size() - 300);
  OwnedPicture window;
  EXPECT_THROW(decode_jpeg_window(file, {20, 10, {17, 20}}, 1, window), PictureFault);
}

TEST(SequentialJpeg, the_same_pixels_without_progression) {
  const GoldenPictures golden;
  const std::vector<std::byte> progressive = golden.file("jpeg_progressive");
  const std::vector<std::uint8_t> sequential = sequential_jpeg(progressive);
  const DecodedPicture decoded = decode_picture(std::as_bytes(std::span(sequential)));
  EXPECT_TRUE(decoded.is_plain_jpeg);
  EXPECT_EQ(decoded.picture.pixels, decode_picture(progressive).picture.pixels);
}

TEST(EncodeJpeg, comes_back_nearly_as_it_was) {
  const OwnedPicture picture = GoldenPictures().decoded("jpeg");
  const std::vector<std::uint8_t> bytes = encode_jpeg(picture, 95);
  const DecodedPicture decoded = decode_picture(std::as_bytes(std::span(bytes)));
  EXPECT_TRUE(decoded.is_plain_jpeg);
  ASSERT_EQ(decoded.picture.size, picture.size);
  double sum = 0;
  for (std::size_t at = 0; at < picture.pixels.size(); ++at) {
    sum += std::abs(int{picture.pixels[at]} - int{decoded.picture.pixels[at]});
  }
  EXPECT_LT(sum / static_cast<double>(picture.pixels.size()), 3);
  EXPECT_LT(encode_jpeg(picture, 30).size(), bytes.size());
}

TEST(ExifOrientation, what_is_no_exif_is_upright) {
  EXPECT_EQ(exif_orientation({}), 1);
  const std::vector<std::uint8_t> cut{'E', 'x', 'i', 'f', 0, 0, 'I', 'I', 42, 0, 8, 0, 0, 0, 255, 255};
  EXPECT_EQ(exif_orientation(cut), 1);
}

}  // namespace lockstep::test::decode_test
