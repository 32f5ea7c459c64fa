#include "dataset/loading/window.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace lockstep::window_test {

// Pixels with values 1, 2, ....
std::vector<std::uint8_t> numbered(std::int64_t count) {
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(count));
  std::iota(pixels.begin(), pixels.end(), std::uint8_t{1});
  return pixels;
}

// By the definition: pad with zeros, take the window, mirror.
std::uint8_t expected(const std::vector<std::uint8_t>& pixels, const PictureSize& picture, std::int64_t channels,
                      const AugmentationParams& augmentation, const PictureSize& image, std::int64_t index) {
  const std::int64_t y = index / (image.width * channels) + augmentation.top;
  const std::int64_t column = index / channels % image.width;
  const std::int64_t x = (augmentation.mirrored ? image.width - 1 - column : column) + augmentation.left;
  const bool inside = y >= 0 && y < picture.height && x >= 0 && x < picture.width;
  return inside ? pixels[static_cast<std::size_t>((y * picture.width + x) * channels + index % channels)] : 0;
}

TEST(Window, is_cut_and_mirrored_wherever_it_lies) {
  constexpr PictureSize picture{6, 23};
  for (const std::int64_t channels : {1, 2, 3, 4}) {
    const std::vector<std::uint8_t> pixels = numbered(picture.height * picture.width * channels);
    for (const PictureSize& image : {PictureSize{6, 23}, PictureSize{4, 7}, PictureSize{9, 40}, PictureSize{1, 1}}) {
      for (std::int32_t top = -10; top <= 7; ++top) {
        for (std::int32_t left = -41; left <= 24; ++left) {
          for (const bool mirrored : {false, true}) {
            const AugmentationParams augmentation{top, left, mirrored};
            std::vector<std::uint8_t> window(static_cast<std::size_t>(image.height * image.width * channels), 77);
            cut_window({{pixels, picture}}, augmentation, image, window);
            for (std::int64_t i = 0; i < std::ssize(window); ++i) {
              ASSERT_EQ(window[static_cast<std::size_t>(i)],
                        expected(pixels, picture, channels, augmentation, image, i))
                  << channels << " channels, " << image.width << " wide: " << top << " " << left << " " << mirrored;
            }
          }
        }
      }
    }
  }
}

// Indices from 1 - count to 2 * count - 2, by walking from the last pixel to the first, back, and to the first again.
std::vector<std::int64_t> walk(std::int64_t count) {
  std::vector<std::int64_t> indices{count - 1};
  for (const std::int64_t step : {-1, 1, -1}) {
    for (std::int64_t i = 1; i < count; ++i) indices.push_back(indices.back() + step);
  }
  return indices;
}

TEST(Window, beside_the_picture_is_its_reflection_up_to_its_last_pixel) {
  for (const PictureSize& picture : {PictureSize{5, 7}, PictureSize{3, 23}, PictureSize{2, 2}, PictureSize{1, 9}}) {
    const std::vector<std::int64_t> rows = walk(picture.height);
    const std::vector<std::int64_t> columns = walk(picture.width);
    for (const std::int64_t channels : {1, 2, 3}) {
      const std::vector<std::uint8_t> pixels = numbered(picture.height * picture.width * channels);
      const PictureSize padded{3 * picture.height - 2, 3 * picture.width - 2};  // by the side - 1
      for (const PictureSize& image : {picture, PictureSize{1, 1}, PictureSize{padded.height, 4}, padded}) {
        if (image.width > padded.width) continue;
        for (std::int64_t row = 0; row + image.height <= padded.height; ++row) {
          for (std::int64_t column = 0; column + image.width <= padded.width; ++column) {
            for (const bool mirrored : {false, true}) {
              AugmentationParams augmentation{static_cast<std::int32_t>(row - picture.height + 1),
                                              static_cast<std::int32_t>(column - picture.width + 1), mirrored};
              augmentation.fill = CropFill::reflect;
              std::vector<std::uint8_t> window(static_cast<std::size_t>(image.height * image.width * channels), 0);
              cut_window({{pixels, picture}}, augmentation, image, window);
              for (std::int64_t i = 0; i < std::ssize(window); ++i) {
                const std::int64_t y = rows.at(static_cast<std::size_t>(row + i / (image.width * channels)));
                const std::int64_t at = i / channels % image.width;
                const std::int64_t x =
                    columns.at(static_cast<std::size_t>(column + (mirrored ? image.width - 1 - at : at)));
                ASSERT_EQ(window[static_cast<std::size_t>(i)],
                          pixels[static_cast<std::size_t>((y * picture.width + x) * channels + i % channels)])
                    << picture.width << " wide, " << channels << " channels, image " << image.width << " wide: " << row
                    << " " << column << " " << mirrored;
              }
            }
          }
        }
      }
    }
  }
}

// numpy.pad([1, 2, 3, 4], 3, mode="reflect") and torch.nn.functional.pad(..., (3, 3), mode="reflect")
TEST(Window, is_reflected_as_by_numpy_and_pytorch) {
  AugmentationParams augmentation{0, -3};
  augmentation.fill = CropFill::reflect;
  std::vector<std::uint8_t> window(10);
  cut_window({{numbered(4), {1, 4}}}, augmentation, {1, 10}, window);
  EXPECT_EQ(window, (std::vector<std::uint8_t>{4, 3, 2, 1, 2, 3, 4, 3, 2, 1}));
}

// Vectors of pixels are read and written at both ends of a row.
TEST(Window, rows_of_every_length_are_mirrored_within_their_memory) {
  for (const std::int64_t channels : {1, 3}) {
    for (std::int64_t width = 1; width < 80; ++width) {
      const std::vector<std::uint8_t> pixels = numbered(width * channels);
      std::vector<std::uint8_t> memory(pixels.size() + 2, 77);
      cut_window({{pixels, {1, width}}}, {0, 0, true}, {1, width}, std::span(memory).subspan(1, pixels.size()));
      EXPECT_EQ(memory.front(), 77);
      EXPECT_EQ(memory.back(), 77);
      for (std::int64_t i = 0; i < width * channels; ++i) {
        const std::int64_t from = (width - 1 - i / channels) * channels + i % channels;
        ASSERT_EQ(memory[static_cast<std::size_t>(i + 1)], pixels[static_cast<std::size_t>(from)]) << width;
      }
    }
  }
}

// A part holds what the window needs: the window stays where it is in the whole picture.
TEST(Window, of_a_part_is_that_of_the_whole_picture) {
  const std::vector<std::uint8_t> pixels = numbered(6 * 8);
  std::vector<std::uint8_t> part(2 * 3);
  cut_window({{pixels, {6, 8}}}, {4, 1}, {2, 3}, part);
  for (const bool mirrored : {false, true}) {
    const AugmentationParams augmentation{4, 1, mirrored};
    std::vector<std::uint8_t> of_whole(2 * 3);
    std::vector<std::uint8_t> of_part(2 * 3);
    cut_window({{pixels, {6, 8}}}, augmentation, {2, 3}, of_whole);
    cut_window({{part, {2, 3}}, 4, 1}, augmentation, {2, 3}, of_part);
    EXPECT_EQ(of_part, of_whole);
  }
  std::vector<std::uint8_t> beyond(4 * 3, 77);
  cut_window({{part, {2, 3}}, 4, 1}, {3, 2}, {4, 3}, beyond);
  EXPECT_EQ(beyond, (std::vector<std::uint8_t>{0, 0, 0, 35, 36, 0, 43, 44, 0, 0, 0, 0}));
}

}  // namespace lockstep::window_test
