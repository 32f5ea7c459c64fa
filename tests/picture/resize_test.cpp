#include "picture/resize.hpp"

#include <gtest/gtest.h>

#include "picture/golden_pictures.hpp"

namespace lockstep::testing {
namespace {

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
  resize(golden.original(), GetParam().box, expected.size, resized);
  EXPECT_EQ(resized.size, expected.size);
  EXPECT_EQ(resized.pixels, expected.pixels);
}

INSTANTIATE_TEST_SUITE_P(Boxes, ResizeTest,
                         ::testing::Values(Case{"all_down", {0, 0, {47, 61}}}, Case{"part_up", {5, 7, {20, 30}}},
                                           Case{"wide", {0, 10, {47, 3}}}, Case{"same_width", {3, 0, {30, 61}}},
                                           Case{"same", {1, 2, {9, 11}}}, Case{"one_pixel", {46, 60, {1, 1}}},
                                           Case{"to_one", {0, 0, {47, 61}}}));

TEST(ResizedSize, sides_are_rounded_as_torchvision_does) {
  EXPECT_EQ(with_shorter_side({300, 400}, 256), (PictureSize{256, 341}));
  EXPECT_EQ(with_shorter_side({400, 300}, 256), (PictureSize{341, 256}));
  EXPECT_EQ(with_shorter_side({64, 64}, 256), (PictureSize{256, 256}));
  EXPECT_EQ(with_longest_side({300, 400}, 200), (PictureSize{150, 200}));
  EXPECT_EQ(with_longest_side({150, 200}, 500), (PictureSize{150, 200}));
  EXPECT_EQ(with_longest_side({1, 4000}, 500), (PictureSize{1, 500}));
}

}  // namespace
}  // namespace lockstep::testing
