#include "device/cpu/products/product_loops.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "device/cpu/conv/direct/direct_geometry.hpp"
#include "device/cpu/instruction_sets/loops.hpp"
#include "device/host_device.hpp"
#include "support/device/cpu_fixture.hpp"

namespace lockstep::cpu {
namespace {

class ProductLoopsTest : public testing::TestWithParam<InstructionSet> {
 protected:
  const ProductLoops& loops_ = loops_of(GetParam()).products;
  const std::int64_t lanes_ = loops_.lanes;
};

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

std::vector<std::uint16_t> in_bf16(const std::vector<float>& values) {
  std::vector<std::uint16_t> rounded;
  for (const float value : values) rounded.push_back(to_bf16(value));
  return rounded;
}

// Rows and vectors of sums over two segments of unlike length, scattered on every side.
struct Sums {
  Sums(const ProductLoops& product_loops, std::int64_t row_count, int vector_count)
      : loops(product_loops), rows(row_count), vectors(vector_count) {
    for (std::int64_t row = 0; row < rows; ++row) {
      left_offsets.push_back((row * 7 % 13) * 5);
      out_offsets.push_back((rows - 1 - row) * vectors * loops.lanes);
    }
  }

  std::vector<float> compute(Accumulate accumulate) { return compute(accumulate, loops.products); }
  std::vector<float> compute(Accumulate accumulate, void (*products)(const Products&)) {
    std::vector<float> out(at(rows * vectors * loops.lanes), 0.25F);
    const Products call{.left = left.data(),
                        .left_step = 3,
                        .left_offsets = left_offsets.data(),
                        .right = right.data(),
                        .right_stride = 17 * loops.lanes,
                        .segments = segments.data(),
                        .segment_count = std::ssize(segments),
                        .out = out.data(),
                        .out_stride = loops.lanes,
                        .out_offsets = out_offsets.data(),
                        .rows = rows,
                        .vectors = vectors,
                        .accumulate = accumulate};
    products(call);
    return out;
  }
  double expected(std::int64_t row, std::int64_t vector, std::int64_t lane) const {
    double sum = 0;
    for (const ProductSegment& segment : segments)
      for (std::int64_t j = 0; j < segment.steps; ++j) {
        sum += static_cast<double>(left[at(left_offsets[at(row)] + segment.left + j * 3)]) *
               right[at(vector * 17 * loops.lanes + segment.right + j * loops.lanes + lane)];
      }
    return sum;
  }

  const ProductLoops& loops;
  std::int64_t rows;
  int vectors;
  std::vector<float> left = CpuFixture::values(200, 1);
  std::vector<float> right = CpuFixture::values(6 * 17 * 16, 2);
  std::vector<ProductSegment> segments{{2, 0, 5}, {11, 6 * loops.lanes, 11}};
  std::vector<std::int64_t> left_offsets;
  std::vector<std::int64_t> out_offsets;
};

TEST_P(ProductLoopsTest, adds_products_for_any_number_of_rows_and_vectors) {
  for (int vectors = 1; vectors <= loops_.max_vectors; ++vectors)
    for (std::int64_t rows = 0; rows <= 30; ++rows) {
      Sums sums(loops_, rows, vectors);
      const std::vector<float> out = sums.compute(Accumulate::overwrite);
      const std::vector<float> added = sums.compute(Accumulate::add);
      for (std::int64_t row = 0; row < rows; ++row)
        for (std::int64_t i = 0; i < vectors * lanes_; ++i) {
          const std::size_t place = at(sums.out_offsets[at(row)] + i);
          ASSERT_NEAR(out[place], sums.expected(row, i / lanes_, i % lanes_), 1e-5);
          ASSERT_EQ(added[place], out[place] + 0.25F);
        }
    }
}

// What a word holds, the channel or column of the lower number in its lower half.
std::pair<float, float> pair_in(float word) {
  const auto bits = std::bit_cast<std::uint32_t>(word);
  return {std::bit_cast<float>(bits << 16), std::bit_cast<float>(bits & 0xffff0000U)};
}
float pair_of(float low, float high) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(to_bf16(low)) | static_cast<std::uint32_t>(to_bf16(high))
                                                                             << 16);
}

TEST_P(ProductLoopsTest, adds_both_products_of_a_pair) {
  for (int vectors = 1; vectors <= loops_.max_vectors; ++vectors)
    for (const std::int64_t rows : {1, 5, 14, 29}) {
      Sums sums(loops_, rows, vectors);
      Sums high = sums;
      const std::vector<float> other_left = CpuFixture::values(std::ssize(sums.left), 3);
      const std::vector<float> other_right = CpuFixture::values(std::ssize(sums.right), 4);
      Sums pairs = sums;
      high.left = other_left;
      high.right = other_right;
      for (std::size_t i = 0; i < sums.left.size(); ++i) pairs.left[i] = pair_of(sums.left[i], other_left[i]);
      for (std::size_t i = 0; i < sums.right.size(); ++i) pairs.right[i] = pair_of(sums.right[i], other_right[i]);
      const std::vector<float> out = pairs.compute(Accumulate::overwrite, loops_.pair_products);
      for (std::int64_t row = 0; row < rows; ++row)
        for (std::int64_t i = 0; i < vectors * lanes_; ++i) {
          const std::int64_t lane = i % lanes_;
          ASSERT_NEAR(out[at(sums.out_offsets[at(row)] + i)],
                      sums.expected(row, i / lanes_, lane) + high.expected(row, i / lanes_, lane), 1e-5);
        }
    }
}

// How convolutions lay their operands: where rows and runs of terms begin on the left, `step` words from term to term.
struct Arrangement {
  const char* name;
  std::int64_t step;
  std::int64_t (*offset)(std::int64_t row);
  std::vector<std::pair<std::int64_t, std::int64_t>> runs;  // where, of how many terms
};

const std::vector<Arrangement>& arrangements() {
  static const std::vector<Arrangement> all{
      {"pixels of pictures 5 wide with padding between their rows",
       1,
       [](std::int64_t row) { return (row / 5 * 7 + row % 5) * 16; },
       {{0, 16}, {32, 16}, {112, 16}}},
      {"pixels of pictures 16 wide", 1, [](std::int64_t row) { return (row / 16 * 18 + row % 16) * 16; }, {{16, 32}}},
      {"pixels of a block, under taps that follow each other",
       1,
       [](std::int64_t row) { return row * 8; },
       {{8, 24}, {80, 24}, {176, 5}}},
      {"pixels of blocks far from each other",
       1,
       [](std::int64_t row) { return row * 8; },
       {{0, 8}, {640, 8}, {1280, 3}}},
      {"pixels without an order",
       1,
       [](std::int64_t row) { return row * 7 % 13 * 24; },
       {{2, 16}, {400, 1}, {500, 16}}},
      {"pixels one below the other", 1, [](std::int64_t row) { return row * 91; }, {{0, 16}}},
      {"channels that follow each other under every term",
       16,
       [](std::int64_t row) { return row / 16 * 320 + row % 16; },
       {{0, 20}, {336, 9}}},
      {"ten channels under each tap", 16, [](std::int64_t row) { return row / 10 * 48 + row % 10; }, {{16, 18}}},
      {"channels in planes of their own",
       1,
       [](std::int64_t row) { return row / 16 * 5 + row % 16 * 112; },
       {{0, 32}, {40, 4}}}};
  return all;
}

TEST_P(ProductLoopsTest, adds_pairs_however_they_are_laid) {
  constexpr std::int64_t max_terms = 64;
  for (const Arrangement& arrangement : arrangements())
    for (int vectors = 1; vectors <= loops_.max_vectors; ++vectors)
      for (const std::int64_t rows : {1, 15, 16, 30, 70}) {
        std::vector<std::int64_t> left_offsets;
        std::vector<std::int64_t> out_offsets;
        for (std::int64_t row = 0; row < rows; ++row) {
          left_offsets.push_back(arrangement.offset(row));
          out_offsets.push_back(row * lanes_);
        }
        // Not a word more than is to be read.
        std::vector<ProductSegment> segments;
        std::int64_t terms = 0;
        std::int64_t words = 0;
        for (const auto& [first, steps] : arrangement.runs) {
          segments.push_back({first, terms * lanes_, steps});
          terms += steps;
          for (const std::int64_t offset : left_offsets)
            words = std::max(words, offset + first + (steps - 1) * arrangement.step + 1);
        }
        const std::vector<float> low = CpuFixture::values(words, 1);
        const std::vector<float> high = CpuFixture::values(words, 2);
        std::vector<float> left;
        for (std::size_t i = 0; i < low.size(); ++i) left.push_back(pair_of(low[i], high[i]));
        const std::vector<float> right_low = CpuFixture::values(vectors * max_terms * lanes_, 3);
        const std::vector<float> right_high = CpuFixture::values(vectors * max_terms * lanes_, 4);
        std::vector<float> right;
        for (std::size_t i = 0; i < right_low.size(); ++i) right.push_back(pair_of(right_low[i], right_high[i]));
        Products call{.left = left.data(),
                      .left_step = arrangement.step,
                      .left_offsets = left_offsets.data(),
                      .right = right.data(),
                      .right_stride = max_terms * lanes_,
                      .segments = segments.data(),
                      .segment_count = std::ssize(segments),
                      .out = nullptr,
                      .out_stride = (rows + 1) * lanes_,
                      .out_offsets = out_offsets.data(),
                      .rows = rows,
                      .vectors = vectors,
                      .accumulate = Accumulate::overwrite};
        for (const auto& [accumulate, before] :
             {std::pair(Accumulate::overwrite, 0.0F), std::pair(Accumulate::add, 0.25F)}) {
          std::vector<float> out(at(vectors * (rows + 1) * lanes_), 0.25F);
          call.out = out.data();
          call.accumulate = accumulate;
          loops_.pair_products(call);
          for (int v = 0; v < vectors; ++v)
            for (std::int64_t row = 0; row <= rows; ++row)
              for (std::int64_t lane = 0; lane < lanes_; ++lane) {
                double expected = row < rows ? before : 0.25;  // what is not a row stays as it is
                for (const ProductSegment& segment : segments)
                  for (std::int64_t j = 0; row < rows && j < segment.steps; ++j) {
                    const std::size_t from = at(left_offsets[at(row)] + segment.left + j * arrangement.step);
                    const std::size_t to = at(v * max_terms * lanes_ + segment.right + j * lanes_ + lane);
                    const auto [left_low, left_high] = pair_in(left[from]);
                    const auto [factor_low, factor_high] = pair_in(right[to]);
                    expected += double{left_low} * factor_low + double{left_high} * factor_high;
                  }
                ASSERT_NEAR(out[at((v * (rows + 1) + row) * lanes_ + lane)], expected, 2e-5)
                    << arrangement.name << ", row " << row << " of " << rows << ", vector " << v << " of " << vectors;
              }
        }
      }
}

TEST_P(ProductLoopsTest, packs_pairs_of_channels_and_of_images_behind_a_norm) {
  constexpr std::int64_t height = 4;
  constexpr std::int64_t width = 7;
  constexpr std::int64_t images = 3;
  constexpr std::int64_t pairs = 4;  // the last image of the second pair and all of two pairs are missing
  const std::int64_t plane = height * width * lanes_;
  const std::vector<float> x = CpuFixture::values(images * plane, 1);
  const std::vector<float> rows = CpuFixture::values(norm_rows * lanes_, 2);
  const std::vector<std::uint16_t> x_bf16 = in_bf16(x);
  for (const std::int64_t step : {1, 2}) {
    const PlaneWindow window = window_of(height, width, {-1, 5}, {-1, 8}, {1, step});
    for (const BlockNorm& norm : {BlockNorm{}, BlockNorm{rows.data(), Activation::relu}}) {
      constexpr std::int64_t pixels = 5 * 8;
      std::vector<std::vector<float>> values(2 * pairs, std::vector<float>(at(pixels * lanes_)));
      for (std::int64_t image = 0; image < images; ++image) {
        std::vector<float>& of_image = values[at(image)];
        loops_.pack_bf16(x_bf16.data() + image * plane, window, norm, of_image.data(), lanes_);
        for (float& value : of_image) value = from_bf16(to_bf16(value));
      }
      // Alone, and of two blocks next to each other.
      std::vector<float> channels(at(pixels * lanes_ / 2), -9);
      loops_.pack_channel_pairs(x_bf16.data(), window, norm, channels.data(), lanes_ / 2);
      std::vector<float> units(at(pixels * lanes_), -9);
      loops_.pack_channel_pairs(x_bf16.data(), window, norm, units.data() + lanes_ / 2, lanes_);
      for (std::size_t i = 0; i < channels.size(); ++i) {
        ASSERT_EQ(pair_in(channels[i]), std::pair(values[0][2 * i], values[0][2 * i + 1]));
        const std::size_t half = at(lanes_ / 2);
        ASSERT_EQ(pair_in(units[i / half * at(lanes_) + half + i % half]), pair_in(channels[i]));
        ASSERT_EQ(units[i / half * at(lanes_) + i % half], -9);
      }
      const ImagePlanes planes{x_bf16.data(), images, plane, pairs};
      std::vector<float> by_pixels(at(pixels * pairs * lanes_), -9);
      loops_.pack_image_pairs(planes, window, norm, by_pixels.data());
      const std::int64_t channel = (pixels * pairs + lanes_ - 1) / lanes_ * lanes_;
      std::vector<float> by_channels(at(lanes_ * channel), -9);
      loops_.pack_image_pairs_by_channel(planes, window, norm, by_channels.data(), channel);
      for (std::int64_t pixel = 0; pixel < pixels; ++pixel) {
        for (std::int64_t pair = 0; pair < pairs; ++pair) {
          for (std::int64_t lane = 0; lane < lanes_; ++lane) {
            const std::size_t value = at(pixel * lanes_ + lane);
            const std::pair expected(values[at(2 * pair)][value], values[at(2 * pair + 1)][value]);
            ASSERT_EQ(pair_in(by_pixels[at((pixel * pairs + pair) * lanes_ + lane)]), expected);
            ASSERT_EQ(pair_in(by_channels[at(lane * channel + pixel * pairs + pair)]), expected);
          }
        }
      }
    }
  }
}

TEST_P(ProductLoopsTest, pairs_the_rows_of_a_matrix_with_zero_behind_the_last) {
  const std::vector<float> matrix = CpuFixture::values(5 * lanes_, 1);
  std::vector<float> pairs(at(3 * lanes_), -9);
  loops_.pair_rows(matrix.data(), 5, pairs.data());
  for (std::int64_t i = 0; i < std::ssize(pairs); ++i) {
    const std::int64_t low = i / lanes_ * 2 * lanes_ + i % lanes_;
    ASSERT_EQ(pair_in(pairs[at(i)]), std::pair(matrix[at(low)], i < 2 * lanes_ ? matrix[at(low + lanes_)] : 0));
  }
}

TEST_P(ProductLoopsTest, writes_zeros_for_sums_of_nothing) {
  Sums sums(loops_, 5, 1);
  sums.segments.clear();
  for (std::int64_t left = 0; left < 200; ++left) sums.segments.push_back({left, 0, 0});
  const std::vector<float> zeros(at(5 * lanes_), 0.0F);
  EXPECT_EQ(sums.compute(Accumulate::overwrite), zeros);
  EXPECT_EQ(sums.compute(Accumulate::overwrite, loops_.pair_products), zeros);
}

TEST_P(ProductLoopsTest, packs_a_window_with_zeros_around_the_plane_and_a_norm_inside) {
  constexpr std::int64_t height = 4;
  constexpr std::int64_t width = 5;
  const std::vector<float> x = CpuFixture::values(height * width * lanes_, 1);
  const std::vector<float> rows = CpuFixture::values(norm_rows * lanes_, 2);
  const std::vector<std::uint16_t> x_bf16 = in_bf16(x);
  for (const std::int64_t step : {1, 2}) {
    const PlaneWindow window = window_of(height, width, {-1, 4}, {-2, 5}, {step, step});
    for (const BlockNorm& norm : {BlockNorm{}, BlockNorm{rows.data(), Activation::relu}}) {
      std::vector<float> packed(at(4 * 5 * lanes_), -9);
      std::vector<float> packed_bf16 = packed;
      loops_.pack_f32(x.data(), window, norm, packed.data(), lanes_);
      loops_.pack_bf16(x_bf16.data(), window, norm, packed_bf16.data(), lanes_);
      EXPECT_EQ(packed, packed_bf16);
      for (std::int64_t i = 0; i < std::ssize(packed); ++i) {
        const std::int64_t row = i / lanes_ / 5 * step - 1;
        const std::int64_t column = i / lanes_ % 5 * step - 2;
        const bool is_inside = row >= 0 && row < height && column >= 0 && column < width;
        const auto lane = at(i % lanes_);
        float value = is_inside ? x[at((row * width + column) * lanes_) + lane] : 0;
        if (is_inside && norm.rows != nullptr) {
          const float factor = rows[at(norm_factor * lanes_) + lane];
          value = std::max(factor * value + rows[at(norm_offset * lanes_) + lane], 0.0F);
        }
        ASSERT_NEAR(packed[at(i)], value, 1e-6) << row << ", " << column;
      }
    }
  }
}

TEST_P(ProductLoopsTest, interleaves_the_channels_of_an_image) {
  constexpr std::int64_t plane = 4 * 40;
  for (const std::int64_t channels : {1, 2, 3})
    for (const std::int64_t step : {1, 3}) {
      const std::vector<float> image = CpuFixture::values(channels * plane, 1);
      const PlaneWindow window = window_of(4, 40, {-1, 6}, {-3, 44}, {step, step});
      std::vector<float> packed(at(6 * 44 * channels), -9);
      loops_.pack_image(image.data(), channels, window, packed.data());
      for (std::int64_t i = 0; i < std::ssize(packed); ++i) {
        const std::int64_t row = i / channels / 44 * step - 1;
        const std::int64_t column = i / channels % 44 * step - 3;
        const bool is_inside = row >= 0 && row < 4 && column >= 0 && column < 40;
        ASSERT_EQ(packed[at(i)], is_inside ? image[at(i % channels * plane + row * 40 + column)] : 0);
      }
    }
}

TEST_P(ProductLoopsTest, transposes_matrices_of_fewer_rows_too) {
  const std::int64_t stride = lanes_ + 3;
  const std::vector<float> matrix = CpuFixture::values(lanes_ * stride, 1);
  for (std::int64_t rows = 1; rows <= lanes_; ++rows) {
    std::vector<float> transposed(at(lanes_ * lanes_), -9);
    loops_.transpose(matrix.data(), stride, rows, transposed.data());
    for (std::int64_t i = 0; i < std::ssize(transposed); ++i) {
      const std::int64_t row = i % lanes_;
      ASSERT_EQ(transposed[at(i)], row < rows ? matrix[at(row * stride + i / lanes_)] : 0);
    }
  }
}

// Values of every exponent, ties and the edges of what fp32 holds, of both signs, in whole vectors.
std::vector<float> values_to_round(std::int64_t lanes) {
  using Limits = std::numeric_limits<float>;
  std::vector<float> values{
      0.0F,          Limits::denorm_min(), 0x1.8p-130F,        std::nextafter(Limits::min(), 0.0F),
      Limits::min(), 1.0F + 0x1p-8F,       1.0F + 0x3p-8F,     1.0F + 0x1.1p-8F,
      Limits::max(), Limits::infinity(),   Limits::quiet_NaN()};
  for (int exponent = -126; exponent < 128; ++exponent) {
    values.push_back(std::ldexp(1.0F + static_cast<float>(exponent + 127) / 300, exponent));
  }
  for (std::size_t i = values.size(); i-- > 0;) values.push_back(-values[i]);
  values.resize(at((std::ssize(values) + lanes - 1) / lanes * lanes), 0.5F);
  return values;
}

// Instructions for it take denormal numbers for zeros.
std::uint16_t in_bf16(float value, InstructionSet set) {
  const bool is_zero = multiplies_bf16(set) && std::fpclassify(value) == FP_SUBNORMAL;
  return to_bf16(is_zero ? std::copysign(0.0F, value) : value);
}

bool is_same(std::uint16_t found, std::uint16_t expected) {
  return found == expected || (std::isnan(from_bf16(found)) && std::isnan(from_bf16(expected)));
}

TEST_P(ProductLoopsTest, rounds_to_bf16_as_the_host_does_but_for_denormals_by_instructions) {
  const std::vector<float> values = values_to_round(lanes_);
  const std::int64_t vectors = std::ssize(values) / lanes_;
  std::vector<std::uint16_t> rounded(values.size());
  loops_.narrow(values.data(), vectors, rounded.data());
  std::vector<std::uint16_t> packed(values.size());
  loops_of(GetParam()).vectors.bf16.pack(values.data(), vectors, lanes_, lanes_, 1, packed.data());
  std::vector<float> pairs(at((vectors + 1) / 2 * lanes_));
  loops_.pair_rows(values.data(), vectors, pairs.data());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint16_t expected = in_bf16(values[i], GetParam());
    EXPECT_TRUE(is_same(rounded[i], expected)) << values[i];
    EXPECT_TRUE(is_same(packed[i], expected)) << values[i];
    const std::size_t row = i / at(lanes_);
    const auto word = std::bit_cast<std::uint32_t>(pairs[row / 2 * at(lanes_) + i % at(lanes_)]);
    EXPECT_TRUE(is_same(static_cast<std::uint16_t>(row % 2 == 0 ? word : word >> 16), expected)) << values[i];
  }
}

INSTANTIATE_TEST_SUITE_P(sets, ProductLoopsTest, testing::ValuesIn(sets_here()),
                         [](const auto& test) { return word_for(test.param); });

}  // namespace
}  // namespace lockstep::cpu
