// Which lines are asked for while products run: all of what is wanted, none beside it.
#include "device/cpu/products/prefetch.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "device/cpu/conv/direct/direct_operand.hpp"
#include "device/cpu/conv/winograd/winograd_kernels.hpp"

namespace lockstep::cpu::prefetch_test {

// Lines of a map that begins at a line, by number.
std::set<std::int64_t> lines_asked_for(Prefetch prefetch, const std::vector<std::byte>& map) {
  std::set<std::int64_t> asked;
  for (Lines lines = prefetch.next(); lines.count > 0; lines = prefetch.next()) {
    for (std::int64_t line = 0; line < lines.count; ++line) {
      const std::int64_t at = lines.first - map.data() + line * line_bytes;
      EXPECT_TRUE(at >= 0 && at < std::ssize(map)) << at;
      asked.insert(at / line_bytes);
    }
  }
  return asked;
}

std::set<std::int64_t> numbers(std::int64_t first, std::int64_t count, std::set<std::int64_t> onto = {}) {
  for (std::int64_t i = 0; i < count; ++i) onto.insert(first + i);
  return onto;
}

TEST(Prefetch, asks_for_a_few_lines_at_once_of_one_block_after_another) {
  const std::vector<std::byte> map(100 * line_bytes);
  Prefetch prefetch;
  prefetch.add({map.data(), 2, 50 * line_bytes, 2, 10 * line_bytes, 5 * line_bytes - 1});
  prefetch.spread_over(8);
  std::vector<std::array<std::int64_t, 2>> asked;
  for (Lines lines = prefetch.next(); lines.count > 0; lines = prefetch.next()) {
    asked.push_back({(lines.first - map.data()) / line_bytes, lines.count});
  }
  const std::vector<std::array<std::int64_t, 2>> expected{{0, 3},  {3, 2},  {10, 3}, {13, 2},
                                                          {50, 3}, {53, 2}, {60, 3}, {63, 2}};
  EXPECT_EQ(asked, expected);
}

TEST(Prefetch, has_asked_for_all_after_so_many_calls) {
  const std::vector<std::byte> map(1000 * line_bytes);
  Prefetch prefetch;
  prefetch.add({map.data(), 1, 0, 1, 0, 70 * line_bytes});
  prefetch.add({});
  prefetch.add({map.data() + 500 * line_bytes, 1, 0, 1, 0, 50 * line_bytes});
  prefetch.spread_over(12);
  std::int64_t lines = 0;
  for (int call = 0; call < 12; ++call) lines += prefetch.next().count;
  EXPECT_EQ(lines, 120);
  EXPECT_EQ(prefetch.next().count, 0);
}

TEST(Prefetch, of_nothing_asks_for_nothing) {
  Prefetch prefetch;
  prefetch.add({});
  prefetch.spread_over(0);
  EXPECT_EQ(prefetch.next().count, 0);
  EXPECT_EQ(Prefetch().next().count, 0);
}

// 3 images of 16 x 16 pixels in 2 blocks of 8 channels, two pixels a line: 128 lines a plane, 4 x 4 tiles an image.
const ConvProblem small{Direction::backward_weight, {16, 16, 3, 1, 1}, 3, 16, 16, Layout::features, DType::f32};

TEST(PrefetchOfTiles, asks_for_the_rows_of_tiles_in_parts_of_images_and_whole_ones) {
  const std::vector<std::byte> map(std::size_t{3 * 2 * 16 * 16 * 8 * 4});
  ConvCall call;
  call.operands = {const_cast<std::byte*>(map.data()), const_cast<std::byte*>(map.data()), nullptr};
  const WinogradShape shape(small, {InstructionSet::avx2, 1});
  ASSERT_EQ(shape.tiles(), 48);
  // Tiles 0 to 4: a row of tiles and one more, which is two rows of 4 pixels: 64 lines of each plane.
  EXPECT_EQ(lines_asked_for(shape.prefetch(call, {0, 5}, 9), map), numbers(128, 64, numbers(0, 64)));
  // The last row of image 0, image 1, and the first row of image 2.
  const auto ends = numbers(512 + 128, 32, numbers(512, 32, numbers(128 + 96, 32, numbers(96, 32))));
  EXPECT_EQ(lines_asked_for(shape.prefetch(call, {12, 24}, 9), map), numbers(256, 256, ends));
  EXPECT_TRUE(lines_asked_for(shape.prefetch(call, {48, 0}, 9), map).empty());
}

TEST(PrefetchOfBands, asks_for_rows_without_padding) {
  const std::vector<std::byte> map(std::size_t{3 * 2 * 16 * 16 * 8 * 4});
  const Operand operand{Layout::features, DType::f32, 16, 16, 16, 8};
  const auto asked = [&](const Band& band, std::int64_t first_block, std::int64_t blocks) {
    const OperandBand read = source_band(forward_axes(small.conv), band, 16, operand, first_block, blocks);
    Prefetch prefetch;
    prefetch.add(rows_of(operand, map.data(), read));
    prefetch.spread_over(7);
    return lines_asked_for(prefetch, map);
  };
  // Of image 1, rows 0 to 3 read rows -1 to 4; rows 12 to 15 read rows 11 to 16.
  EXPECT_EQ(asked({1, 1, 0, 4}, 0, 2), numbers(256 + 128, 40, numbers(256, 40)));
  EXPECT_EQ(asked({1, 1, 12, 4}, 1, 1), numbers(256 + 128 + 88, 40));
  EXPECT_EQ(asked({0, 2, 0, 16}, 1, 1), numbers(256 + 128, 128, numbers(128, 128)));
}

TEST(PrefetchOfBands, leaves_images_alone) {
  const std::vector<std::byte> map(std::size_t{3 * 16 * 16 * 4});
  const Operand images{Layout::images, DType::f32, 3, 16, 16, 8};
  const OperandBand read = source_band(forward_axes(small.conv), {0, 1, 0, 16}, 16, images, 0, 1);
  EXPECT_EQ(lines_of(rows_of(images, map.data(), read)), 0);
}

}  // namespace lockstep::cpu::prefetch_test
