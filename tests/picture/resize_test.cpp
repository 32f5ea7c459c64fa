#include "picture/resize.hpp"

#include <gtest/gtest.h>

#include "picture/golden_pictures.hpp"
#include "support/samples/smooth_picture.hpp"

namespace lockstep::test::resize_test {

struct Case {
  const char* name;
  PictureBox box;
};

void PrintTo(const Case& one, std::ostream* out) { *out << one.name; }

class ResizeTest : public ::testing::TestWithParam<Case> {};

TEST_P(ResizeTest, the_same_bits_as_pillow) {
  const GoldenPictures golden;
  const OwnedPicture expected = golden.resized(GetParam().name);
  OwnedPicture resized;
  resize(golden.original(), {GetParam().box, expected.size}, resized);
  EXPECT_EQ(resized.size, expected.size);
  EXPECT_EQ(resized.pixels, expected.pixels);
}

INSTANTIATE_TEST_SUITE_P(Boxes, ResizeTest,
                         ::testing::Values(Case{"all_down", {0, 0, {47, 61}}}, Case{"part_up", {5, 7, {20, 30}}},
                                           Case{"wide", {0, 10, {47, 3}}}, Case{"same_width", {3, 0, {30, 61}}},
                                           Case{"same", {1, 2, {9, 11}}}, Case{"one_pixel", {46, 60, {1, 1}}},
                                           Case{"to_one", {0, 0, {47, 61}}}));

TEST(Resampler, a_window_of_the_result_is_the_same_bits_as_in_the_whole) {
  const OwnedPicture picture = smooth_picture({47, 61}, 1);
  for (const PictureSize& size : {PictureSize{20, 90}, PictureSize{47, 61}, PictureSize{130, 13}}) {
    const Resampling resampling{{3, 5, {40, 50}}, size};
    OwnedPicture whole;
    resize(picture, resampling, whole);
    const PictureBox window{size.height / 3, size.width / 4, {size.height / 2, size.width / 2}};
    const Resampler resampler(resampling, window);
    const PictureBox source = resampler.source();
    ASSERT_GE(source.top, 3);
    ASSERT_LE(source.left + source.size.width, 55);
    OwnedPicture part;
    resampler.resample(picture.pixels.data() + (source.top * 61 + source.left) * 3, 61 * 3, part);
    OwnedPicture expected;
    resize(whole, {window, window.size}, expected);
    EXPECT_EQ(part.size, window.size);
    EXPECT_EQ(part.pixels, expected.pixels);
  }
}

// Half a picture of pixels that stand twice is the picture; a box that begins on an odd pixel begins in a pixel's
// middle.
TEST(Resampler, takes_a_picture_at_half_its_size) {
  const OwnedPicture half = smooth_picture({30, 40}, 2);
  OwnedPicture doubled{{}, {60, 80}};
  for (std::int64_t i = 0; i < 60 * 80; ++i) {
    const auto pixel = static_cast<std::ptrdiff_t>((i / 80 / 2 * 40 + i % 80 / 2) * 3);
    doubled.pixels.insert(doubled.pixels.end(), half.pixels.begin() + pixel, half.pixels.begin() + pixel + 3);
  }
  for (const std::int64_t first : {0, 5}) {
    const Resampling resampling{{first, first, {50, 60}}, {9, 11}};
    const Resampler resampler(resampling, {0, 0, {9, 11}}, 2);
    const PictureBox source = resampler.source();
    EXPECT_EQ(source.top, first / 2);
    EXPECT_EQ(source.size, (PictureSize{25 + first % 2, 30 + first % 2}));
    OwnedPicture of_half;
    resampler.resample(half.pixels.data() + (source.top * 40 + source.left) * 3, 40 * 3, of_half);
    OwnedPicture of_whole;
    resize(doubled, resampling, of_whole);
    for (std::size_t i = 0; i < of_half.pixels.size(); ++i) ASSERT_NEAR(of_half.pixels[i], of_whole.pixels[i], 3) << i;
  }
}

OwnedPicture turned(const OwnedPicture& picture) {
  OwnedPicture result;
  result.size = {picture.size.width, picture.size.height};
  result.pixels.resize(picture.pixels.size());
  for (std::int64_t y = 0; y < picture.size.height; ++y) {
    for (std::int64_t x = 0; x < picture.size.width; ++x) {
      for (std::int64_t channel = 0; channel < 3; ++channel) {
        result.pixels[static_cast<std::size_t>((x * picture.size.height + y) * 3 + channel)] =
            picture.pixels[static_cast<std::size_t>((y * picture.size.width + x) * 3 + channel)];
      }
    }
  }
  return result;
}

// Rows go another way than columns, several at once, and what is left over yet another one.
TEST(Resampler, a_row_becomes_what_a_column_becomes) {
  for (std::int64_t height = 1; height < 22; ++height) {
    for (std::int64_t width = 1; width < 22; ++width) {
      const OwnedPicture picture = smooth_picture({height, width}, width);
      for (const std::int64_t wanted : {1, 5, 20, 23, 64}) {
        OwnedPicture of_rows;
        resize(picture, {{0, 0, picture.size}, {height, wanted}}, of_rows);
        const OwnedPicture columns = turned(picture);
        OwnedPicture of_columns;
        resize(columns, {{0, 0, columns.size}, {wanted, height}}, of_columns);
        ASSERT_EQ(of_rows.pixels, turned(of_columns).pixels) << height << " x " << width << " to " << wanted;
      }
    }
  }
}

TEST(ResizedSize, sides_are_rounded_as_torchvision_does) {
  EXPECT_EQ(with_shorter_side({300, 400}, 256), (PictureSize{256, 341}));
  EXPECT_EQ(with_shorter_side({400, 300}, 256), (PictureSize{341, 256}));
  EXPECT_EQ(with_shorter_side({64, 64}, 256), (PictureSize{256, 256}));
  EXPECT_EQ(with_shorter_side({1, 1}, 1), (PictureSize{1, 1}));
  EXPECT_EQ(covering({28, 44}, {28, 44}), (PictureSize{28, 44}));
  EXPECT_EQ(covering({100, 50}, {28, 44}), (PictureSize{88, 44}));
  EXPECT_EQ(covering({50, 100}, {28, 44}), (PictureSize{28, 56}));
  EXPECT_EQ(covering({50, 100}, {44, 28}), (PictureSize{44, 88}));
  EXPECT_EQ(with_longest_side({300, 400}, 200), (PictureSize{150, 200}));
  EXPECT_EQ(with_longest_side({150, 200}, 500), (PictureSize{150, 200}));
  EXPECT_EQ(with_longest_side({1, 4000}, 500), (PictureSize{1, 500}));
}

}  // namespace lockstep::test::resize_test
