#include "device/cpu/conv/direct/direct_geometry.hpp"

#include <gtest/gtest.h>

#include <set>
#include <tuple>

namespace lockstep::cpu::direct_geometry_test {

TEST(BandTest, bands_hold_every_row_once_and_have_at_most_two_sizes) {
  for (const std::int64_t images : {1, 3, 64})
    for (const std::int64_t rows : {1, 7, 33})
      for (const std::int64_t pixels : {1, 30, 256})
        for (const std::int64_t multiple : {1, 2, 3}) {
          const std::vector<Band> bands = make_bands(images, rows, 5, pixels, multiple);
          std::set<std::pair<std::int64_t, std::int64_t>> seen;
          for (const Band& band : bands) {
            EXPECT_EQ(band.first_row % multiple, 0);
            EXPECT_TRUE(band.is_as_large_as(bands.front()) || band.is_as_large_as(bands.back()));
            EXPECT_TRUE(band.images == 1 || band.rows == rows);
            for (std::int64_t i = 0; i < band.images; ++i)
              for (std::int64_t row = 0; row < band.rows; ++row) {
                EXPECT_TRUE(seen.emplace(band.first_image + i, band.first_row + row).second);
              }
          }
          EXPECT_EQ(std::ssize(seen), images * rows);
        }
}

TEST(BandTest, bands_are_as_large_as_asked_where_rows_allow_it) {
  EXPECT_EQ(make_bands(64, 4, 4, 256, 1).size(), 4U);
  EXPECT_EQ(make_bands(1, 56, 56, 256, 1).front().rows, 5);  // 3136 pixels in 13 bands
  EXPECT_EQ(make_bands(1, 28, 28, 256, 1).front().rows, 7);  // even: not 9, 9, 9 and 1
}

// (row of the result, row of the kernel, row of the source) of every product.
using Meetings = std::set<std::tuple<std::int64_t, std::int64_t, std::int64_t>>;

Meetings meetings_of(const Axis& axis, std::int64_t rows) {
  Meetings met;
  for (const AxisPhase& phase : axis.phases)
    for (std::int64_t a = 0; a < axis.count(phase, rows); ++a)
      for (const Tap& tap : phase.taps) {
        met.emplace(phase.first + a * axis.spacing, tap.kernel, phase.source + a * axis.advance + tap.offset);
      }
  return met;
}

TEST(AxisTest, forward_and_backward_data_meet_the_same_rows) {
  for (const std::int64_t kernel : {1, 2, 3, 7})
    for (const std::int64_t stride : {1, 2, 3})
      for (const std::int64_t padding : {0, 1, 4}) {
        const Conv1d conv{kernel, stride, padding};
        constexpr std::int64_t rows = 12;
        Meetings forward;
        Meetings expected;
        for (std::int64_t y = -20; y < 40; ++y)
          for (std::int64_t k = 0; k < kernel; ++k) {
            const std::int64_t x = y * stride + k - padding;
            if (y >= 0 && y < rows) forward.emplace(y, k, x);
            if (x >= 0 && x < rows) expected.emplace(x, k, y);
          }
        EXPECT_EQ(meetings_of(forward_axis(conv), rows), forward);
        EXPECT_EQ(meetings_of(backward_data_axis(conv), rows), expected);
      }
}

TEST(AxisTest, a_span_holds_all_rows_that_are_read_and_begins_and_ends_with_one) {
  for (const Axis& axis : {forward_axis({3, 2, 1}), backward_data_axis({3, 2, 1}), backward_data_axis({1, 2, 0}),
                           forward_axis({1, 2, 0})}) {
    std::set<std::int64_t> read;
    for (const auto& [row, kernel, source] : meetings_of(axis, 5)) read.insert(source);
    const Span span = source_span(axis, 5);
    EXPECT_EQ(span.first, *read.begin());
    EXPECT_EQ(span.first + span.count - 1, *read.rbegin());
  }
}

TEST(AxisTest, rows_that_no_one_reads_are_left_out_where_the_kernel_is_a_point) {
  const Axis packed = packed_axis(forward_axis({1, 2, 0}));
  EXPECT_EQ(packed.step, 2);
  EXPECT_EQ(source_span(packed, 5).count, 5);
  EXPECT_EQ(packed_axis(forward_axis({3, 2, 1})).step, 1);
}

TEST(PlaneWindowTest, knows_which_of_its_columns_lie_inside) {
  const auto inside = [](std::int64_t width, const Span& columns, std::int64_t step) {
    const PlaneWindow window = window_of(1, width, {0, 1}, columns, {step, step});
    return std::pair(window.first_inside, window.last_inside);
  };
  EXPECT_EQ(inside(8, {-1, 10}, 1), std::pair(std::int64_t{1}, std::int64_t{9}));
  EXPECT_EQ(inside(8, {0, 8}, 1), std::pair(std::int64_t{0}, std::int64_t{8}));
  EXPECT_EQ(inside(7, {-3, 6}, 2), std::pair(std::int64_t{2}, std::int64_t{5}));  // columns -3, -1, 1, 3, 5, 7
  EXPECT_EQ(inside(2, {-9, 3}, 1), std::pair(std::int64_t{3}, std::int64_t{3}));  // none
  EXPECT_EQ(inside(2, {5, 3}, 1), std::pair(std::int64_t{0}, std::int64_t{0}));   // none
}

TEST(PixelStridesTest, packed_blocks_are_an_odd_number_of_cache_lines_apart) {
  for (const std::int64_t columns : {1, 4, 7, 32}) {
    const PixelStrides strides = spread_strides(3, 8, columns, 8);
    EXPECT_GE(strides.block, 8 * columns * 8);
    EXPECT_EQ(strides.block % 32, 16);
    EXPECT_EQ(strides.image, 3 * strides.block);
  }
}

TEST(WeightPlacesTest, a_first_layer_has_its_own_channels_as_rows) {
  const WeightPlaces first({3, 20, 7, 2, 3}, 8);
  EXPECT_EQ(first.matrix(), 3 * 8);
  EXPECT_EQ(first.count(), 3 * 49 * 3 * 8);
  const WeightPlaces later({20, 20, 3, 1, 1}, 16);
  EXPECT_EQ(later.matrix(), 16 * 16);
  EXPECT_EQ(later.count(), 2 * 2 * 9 * 16 * 16);
}

}  // namespace lockstep::cpu::direct_geometry_test
