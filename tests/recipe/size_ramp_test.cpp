#include "recipe/size_ramp.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

namespace lockstep::size_ramp_test {

std::vector<std::int64_t> sides(const char* ramp, std::int64_t full, std::int64_t first, std::int64_t count) {
  std::vector<std::int64_t> sides;
  for (std::int64_t epoch = first; epoch < first + count; ++epoch) {
    sides.push_back(side_in_epoch(parse_size_ramp(ramp).value(), full, epoch));
  }
  return sides;
}

using Sides = std::vector<std::int64_t>;

// As get_resolution() of ffcv-imagenet's train_imagenet.py gives them, with NumPy 1.24.
TEST(SizeRampTest, images_grow_as_in_the_published_formula) {
  EXPECT_EQ(sides("160:11:13", 192, 10, 4), (Sides{160, 160, 192, 192}));
  EXPECT_EQ(sides("160:65:76", 192, 65, 12), (Sides{160, 160, 160, 160, 160, 160, 192, 192, 192, 192, 192, 192}));
  EXPECT_EQ(sides("128:0:16", 224, 0, 17),
            (Sides{128, 128, 128, 160, 160, 160, 160, 160, 192, 192, 192, 192, 192, 192, 224, 224, 224}));
  EXPECT_EQ(sides("96:2:10", 256, 0, 12), (Sides{96, 96, 96, 128, 128, 160, 192, 192, 224, 224, 256, 256}));
}

TEST(SizeRampTest, another_multiple_is_for_small_pictures) {
  EXPECT_EQ(sides("24:0:9:4", 32, 0, 10), (Sides{24, 24, 24, 28, 28, 28, 28, 32, 32, 32}));
}

TEST(SizeRampTest, without_a_way_between_them_the_end_follows_the_beginning) {
  EXPECT_EQ(sides("24:2:2", 32, 1, 4), (Sides{24, 24, 32, 32}));
}

TEST(SizeRampTest, no_multiple_leads_outside) {
  EXPECT_EQ(sides("150:0:4", 180, 0, 5), (Sides{150, 160, 160, 160, 180}));
  EXPECT_EQ(sides("33:0:2", 40, 1, 1), (Sides{33}));
  EXPECT_EQ(sides("50:0:2", 60, 1, 1), (Sides{60}));
}

TEST(SizeRampTest, a_text_comes_back) {
  EXPECT_EQ(parse_size_ramp("160:65:76"), (SizeRamp{160, 65, 76, 32}));
  EXPECT_EQ(parse_size_ramp("24:0:6:4"), (SizeRamp{24, 0, 6, 4}));
  EXPECT_EQ(size_ramp_text({160, 65, 76, 32}), "160:65:76");
  EXPECT_EQ(size_ramp_text({24, 0, 6, 4}), "24:0:6:4");
}

TEST(SizeRampTest, other_texts_are_no_ramps) {
  for (const char* text : {"", ":", "160", "160:65", "160:65:76:", "160:65:76:32:1", "160::76", "160:76:65", "7:0:1",
                           "4097:0:1", "160:-1:5", "160:0:1000001", "160:0:1:0", "a:b:c", "160:65:76 ", "none"}) {
    EXPECT_EQ(parse_size_ramp(text), std::nullopt) << text;
  }
}

}  // namespace lockstep::size_ramp_test
