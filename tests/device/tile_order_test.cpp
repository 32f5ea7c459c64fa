#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "device/cpu/conv/winograd/winograd_kernels.hpp"
#include "device/cpu/instruction_sets/instruction_set.hpp"

namespace lockstep::cpu {
namespace {

WinogradShape shape_of(std::int64_t size, std::int64_t stride = 1, Direction direction = Direction::forward) {
  const ConvProblem problem{direction, {16, 16, 3, stride, 1}, 6, size, size, Layout::features, DType::f32};
  return {problem, {widest_instruction_set(), 1}};
}

std::int64_t products(const WinogradShape& shape, const TileOrder& tiles) {
  std::int64_t count = 0;
  for (std::int64_t point = 0; point < shape.loops->points; ++point) count += tiles.needing(point).count;
  return count;
}

std::int64_t products_of_an_image(std::int64_t size, std::int64_t stride = 1,
                                  Direction direction = Direction::forward) {
  const WinogradShape shape = shape_of(size, stride, direction);
  return products(shape, shape.ordered({0, shape.y.down * shape.y.across}));
}

TEST(TileOrderTest, multiplies_only_the_points_that_outputs_need) {
  EXPECT_EQ(products_of_an_image(8), 12 * 12);
  EXPECT_EQ(products_of_an_image(7), 11 * 11);
  EXPECT_EQ(products_of_an_image(5), 11 * 11);
  EXPECT_EQ(products_of_an_image(15), 23 * 23);
  EXPECT_EQ(products_of_an_image(3), 5 * 5);
  EXPECT_EQ(products_of_an_image(16, 2), 18 * 18);
  EXPECT_EQ(products_of_an_image(14, 2), 16 * 16);  // y is 7 x 7: the last row of tiles lacks two of nine lines
  EXPECT_EQ(products_of_an_image(14, 2, Direction::backward_data), 16 * 16);
  EXPECT_EQ(products_of_an_image(15, 2, Direction::backward_data), 17 * 17);
}

// Checked against the definition, for every point, every range of three images, and maps cut at both, one or no side.
TEST(TileOrderTest, has_each_tile_once_and_those_that_need_a_point_side_by_side) {
  for (const std::int64_t height : {7, 8}) {
    for (const std::int64_t width : {8, 9}) {
      const ConvProblem problem{Direction::forward, {16, 16, 3, 1, 1}, 3, height, width, Layout::features, DType::f32};
      const WinogradShape shape(problem, {widest_instruction_set(), 1});
      for (std::int64_t first = 0; first < shape.tiles(); ++first) {
        for (std::int64_t count = 1; first + count <= shape.tiles(); ++count) {
          const TileOrder order = shape.ordered({first, count});
          std::vector<bool> seen(static_cast<std::size_t>(shape.tiles()));
          ASSERT_EQ(order.all().count, count);
          for (std::int64_t i = 0; i < count; ++i) {
            const Tile& tile = order.all().first[i];
            const std::int64_t number = (tile.image * shape.y.down + tile.row) * shape.y.across + tile.column;
            ASSERT_TRUE(first <= number && number < first + count);
            ASSERT_FALSE(seen[static_cast<std::size_t>(number)]);
            seen[static_cast<std::size_t>(number)] = true;
            for (std::int64_t point = 0; point < 36; ++point) {
              const bool is_cut_below = height == 7 && tile.row + 1 == shape.y.down;
              const bool is_cut_right = width == 9 && tile.column + 1 == shape.y.across;
              const bool is_needed = (!is_cut_below || point / 6 != 5) && (!is_cut_right || point % 6 != 5);
              const TileRange needing = order.needing(point);
              ASSERT_EQ(needing.first <= i && i < needing.first + needing.count, is_needed);
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace lockstep::cpu
