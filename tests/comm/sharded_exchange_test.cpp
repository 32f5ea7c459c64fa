// Reduce-scatter and all-gather, as sharded optimizers use them.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "comm/mpi_slices.hpp"
#include "comm/reducer_cases.hpp"

namespace lockstep::sharded_exchange_test {

constexpr std::int64_t counts[] = {0, 1, 5, 15, 16, 17, 31, 33, 63, 64, 65, 100, 1000, 4097};

class ShardedExchangeTest : public testing::TestWithParam<ReducerCase> {
 protected:
  void fill(const Tensor& values, std::int64_t step) const {
    for (std::int64_t i = 0; i < values.shape()[0]; ++i) values.as<float>()[i] = value_of(world_.rank(), step, i);
  }

  // Whether it is the sum of what fill() gave the ranks: to the bit where the order is known.
  bool is_sum(float got, std::int64_t step, std::int64_t index) const {
    const float expected = sum_in_rank_order(world_.size(), step, index);
    if (world_.size() <= 2 || GetParam().sums_in_rank_order) {
      return std::bit_cast<std::uint32_t>(got) == std::bit_cast<std::uint32_t>(expected);
    }
    return std::abs(got - expected) <= 0x1p-7F;  // the terms are below 2^15, each addition is rounded to 24 bits
  }

  // Ranks are out of step with each other, another one each time.
  void fall_behind(std::int64_t turn) const {
    if (turn % 5 == world_.rank()) std::this_thread::sleep_for(std::chrono::microseconds(300));
  }

  Communicator world_ = world();
};

TEST_P(ShardedExchangeTest, parts_cover_every_slice_once_and_begin_with_a_cache_line) {
  const auto reducer = GetParam().make(bytes_of(4097));
  const Tensor values = reducer->allocate(4097);
  for (const std::int64_t count : counts) {
    const Tensor slice = values.slice(0, count);
    std::vector<SlicePart> parts;
    std::vector<std::int64_t> bounds;
    for (int rank = 0; rank < world_.size(); ++rank) {
      const SlicePart part = reducer->part_of(slice, rank);
      bounds.insert(bounds.end(), {part.first, part.count});
      if (part.count > 0) parts.push_back(part);
    }
    const std::string text = fmt::format("{}", fmt::join(bounds, " "));
    EXPECT_EQ(world_.broadcast(text, 0), text) << "ranks disagree";

    std::ranges::sort(parts, {}, &SlicePart::first);
    std::int64_t end = 0;
    for (const SlicePart& part : parts) {
      ASSERT_EQ(part.first, end) << text;
      EXPECT_EQ(part.first % part_alignment, 0) << text;
      end += part.count;
    }
    EXPECT_EQ(end, count) << text;
    const auto owners = static_cast<std::int64_t>(parts.size());
    if (count > 1000) {
      EXPECT_GE(owners, std::min(world_.size(), 2)) << text;
      for (const SlicePart& part : parts) EXPECT_LE(part.count, count / owners + 2 * part_alignment) << text;
    }
  }
}

TEST_P(ShardedExchangeTest, a_reduce_scatter_gives_each_rank_its_part_of_the_sum) {
  constexpr std::int64_t count = 9'111;
  const auto reducer = GetParam().make(bytes_of(count));
  const Tensor values = reducer->allocate(count);
  for (const std::int64_t length : counts) {
    for (const std::int64_t first : {0, 16, 5'003}) {
      fill(values, length);
      const Tensor slice = values.slice(first, length);
      reducer->start_reduce_scatter(slice);
      reducer->wait();
      const SlicePart part = reducer->part_of(slice, world_.rank());
      for (std::int64_t i = first + part.first; i < first + part.first + part.count; ++i) {
        ASSERT_TRUE(is_sum(values.as<float>()[i], length, i)) << "at " << i << " of " << length;
      }
      for (std::int64_t i = 0; i < count; ++i) {
        if (i >= first && i < first + length) continue;
        ASSERT_EQ(values.as<float>()[i], value_of(world_.rank(), length, i)) << "outside the slice, at " << i;
      }
    }
  }
}

TEST_P(ShardedExchangeTest, an_all_gather_brings_every_rank_the_parts_of_all) {
  constexpr std::int64_t count = 9'111;
  const auto reducer = GetParam().make(bytes_of(count));
  const Tensor values = reducer->allocate(count);
  const auto weight = [](std::int64_t length, std::int64_t i) { return value_of(77, length, i); };
  for (const std::int64_t length : counts) {
    for (const std::int64_t first : {0, 16, 5'003}) {
      fill(values, length);
      const Tensor slice = values.slice(first, length);
      const SlicePart part = reducer->part_of(slice, world_.rank());
      for (std::int64_t i = part.first; i < part.first + part.count; ++i) slice.as<float>()[i] = weight(length, i);
      reducer->start_all_gather(slice);
      reducer->wait();
      for (std::int64_t i = 0; i < length; ++i) ASSERT_EQ(slice.as<float>()[i], weight(length, i)) << length;
      for (std::int64_t i = 0; i < count; ++i) {
        if (i >= first && i < first + length) continue;
        ASSERT_EQ(values.as<float>()[i], value_of(world_.rank(), length, i)) << "outside the slice, at " << i;
      }
    }
  }
}

// A rank that wrote its part into the arrays of others before they had started the slice changed weights in use.
TEST_P(ShardedExchangeTest, weights_are_updated_in_parts_step_after_step) {
  constexpr std::int64_t slices = 24;
  constexpr std::int64_t length = 1'003;
  constexpr std::int64_t count = slices * length;
  const auto reducer = GetParam().make(2 * bytes_of(count));
  const Tensor gradients = reducer->allocate(count);
  const Tensor weights = reducer->allocate(count);
  std::vector<float> expected(count);
  for (std::int64_t step = 0; step < 12; ++step) {
    fill(gradients, step);
    for (std::int64_t slice = 0; slice < slices; ++slice) {
      reducer->start_reduce_scatter(gradients.slice(slice * length, length));
      fall_behind(step + slice);
    }
    reducer->wait();
    for (std::int64_t slice = 0; slice < slices; ++slice) {
      const Tensor updated = weights.slice(slice * length, length);
      fall_behind(step + 2 * slice);
      for (std::int64_t i = 0; i < length; ++i) {
        ASSERT_EQ(updated.as<float>()[i], expected[static_cast<std::size_t>(slice * length + i)]) << "changed early";
      }
      const SlicePart part = reducer->part_of(updated, world_.rank());
      const Tensor sums = gradients.slice(slice * length, length);
      for (std::int64_t i = part.first; i < part.first + part.count; ++i) {
        ASSERT_TRUE(is_sum(sums.as<float>()[i], step, slice * length + i));
        updated.as<float>()[i] += sums.as<float>()[i];
      }
      reducer->start_all_gather(updated);
    }
    reducer->wait();
    const std::vector<float> now(weights.as<float>(), weights.as<float>() + count);
    for (std::int64_t i = 0; i < count; ++i) {
      const auto at = static_cast<std::size_t>(i);
      ASSERT_NEAR(now[at], expected[at] + sum_in_rank_order(world_.size(), step, i), 1.0F);
    }
    expected = now;
    std::vector<std::byte> bytes(weights.data(), weights.data() + weights.bytes());
    world_.broadcast(bytes, 0);
    EXPECT_TRUE(std::ranges::equal(bytes, std::span(weights.data(), bytes.size()))) << "ranks disagree";
  }
}

TEST_P(ShardedExchangeTest, sums_reduce_scatters_and_all_gathers_may_be_in_flight_together) {
  constexpr std::int64_t length = 997;
  const auto reducer = GetParam().make(2 * bytes_of(6 * length));
  const Tensor gradients = reducer->allocate(6 * length);
  const Tensor weights = reducer->allocate(3 * length);
  for (std::int64_t step = 0; step < 8; ++step) {
    fill(gradients, step);
    fill(weights, 100 + step);
    for (std::int64_t i = 0; i < 3; ++i) {
      const Tensor slice = weights.slice(i * length, length);
      const SlicePart part = reducer->part_of(slice, world_.rank());
      std::fill_n(slice.as<float>() + part.first, part.count, static_cast<float>(step * 3 + i));
      reducer->start_sum(gradients.slice(2 * i * length, length));
      fall_behind(step + i);
      reducer->start_all_gather(slice);
      reducer->start_reduce_scatter(gradients.slice((2 * i + 1) * length, length));
    }
    reducer->wait();
    for (std::int64_t i = 0; i < 3; ++i) {
      for (std::int64_t at = 0; at < length; ++at) {
        ASSERT_TRUE(is_sum(gradients.as<float>()[2 * i * length + at], step, 2 * i * length + at));
        ASSERT_EQ(weights.as<float>()[i * length + at], static_cast<float>(step * 3 + i));
      }
      const std::int64_t scattered = (2 * i + 1) * length;
      const SlicePart part = reducer->part_of(gradients.slice(scattered, length), world_.rank());
      for (std::int64_t at = scattered + part.first; at < scattered + part.first + part.count; ++at) {
        ASSERT_TRUE(is_sum(gradients.as<float>()[at], step, at));
      }
    }
  }
}

// Reproducible sums are i64, the weights they update f32.
TEST_P(ShardedExchangeTest, whole_numbers_are_exact_next_to_weights) {
  constexpr std::int64_t count = 30'001;
  const auto reducer = GetParam().make(count * size_of(DType::i64) + bytes_of(count));
  const Tensor sums = reducer->allocate(count, DType::i64);
  const Tensor weights = reducer->allocate(count);
  const auto number = [](int rank, std::int64_t i) {
    return (std::int64_t{1} << 55) * (rank % 2 == 0 ? 1 : -1) + i * (rank + 1);
  };
  const auto sum = [&](std::int64_t i) {
    std::int64_t all = 0;
    for (int rank = 0; rank < world_.size(); ++rank) all += number(rank, i);
    return all;
  };
  for (std::int64_t i = 0; i < count; ++i) sums.as<std::int64_t>()[i] = number(world_.rank(), i);
  for (const auto& [first, length] : {SlicePart{0, 17}, SlicePart{17, count - 17}}) {
    reducer->start_reduce_scatter(sums.slice(first, length));
  }
  reducer->wait();
  for (const auto& [first, length] : {SlicePart{0, 17}, SlicePart{17, count - 17}}) {
    const Tensor updated = weights.slice(first, length);
    EXPECT_EQ(reducer->part_of(updated, world_.rank()), reducer->part_of(sums.slice(first, length), world_.rank()));
    const SlicePart part = reducer->part_of(updated, world_.rank());
    for (std::int64_t i = part.first; i < part.first + part.count; ++i) {
      ASSERT_EQ(sums.as<std::int64_t>()[first + i], sum(first + i)) << first + i;
      updated.as<float>()[i] = static_cast<float>(sums.as<std::int64_t>()[first + i]);
    }
    reducer->start_all_gather(updated);
  }
  reducer->start_all_gather(sums.slice(17, count - 17));
  reducer->wait();
  for (std::int64_t i = 0; i < count; ++i) {
    ASSERT_EQ(weights.as<float>()[i], static_cast<float>(sum(i))) << i;
  }
  for (std::int64_t i = 17; i < count; ++i) ASSERT_EQ(sums.as<std::int64_t>()[i], sum(i)) << i;
}

TEST_P(ShardedExchangeTest, two_allocations_are_zeros_and_share_no_page) {
  const auto reducer = GetParam().make(bytes_of(5) + bytes_of(7'001));
  const Tensor gradients = reducer->allocate(5);
  const Tensor weights = reducer->allocate(7'001);
  for (std::int64_t i = 0; i < 7'001; ++i) ASSERT_EQ(weights.as<float>()[i], 0.0F);
  std::fill_n(weights.as<float>(), 7'001, 1.0F);  // up to the last one
  world_.barrier();
  for (std::int64_t i = 0; i < 5; ++i) EXPECT_EQ(gradients.as<float>()[i], 0.0F);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(weights.data()) % Arena::alignment, 0U);
  const auto page = [](const std::byte* at) { return reinterpret_cast<std::uintptr_t>(at) / 4096; };
  EXPECT_TRUE(page(gradients.data() + gradients.bytes() - 1) < page(weights.data()) ||
              page(weights.data() + weights.bytes() - 1) < page(gradients.data()));
}

INSTANTIATE_TEST_SUITE_P(All, ShardedExchangeTest, testing::ValuesIn(reducer_cases()),
                         [](const testing::TestParamInfo<ReducerCase>& one) { return one.param.name; });

// More elements than an MPI count holds take several calls, whose limits lie anywhere in the parts of the ranks.
TEST(MpiSlices, every_number_of_calls_gives_the_same) {
  const Communicator all = world();
  constexpr std::int64_t count = 1'037;
  std::vector<float> memory(count);
  const Tensor values(reinterpret_cast<std::byte*>(memory.data()), bytes_of(count), Shape{count}, DType::f32,
                      Layout::plain);
  const SlicePart own = equal_part(count, all.size(), all.rank());
  const auto sum = [&](std::int64_t i) {
    return static_cast<float>(all.size() * i + all.size() * (all.size() - 1) / 2);
  };
  for (const std::int64_t largest : {7, 16, 100, 259, 260, 1'036, 1'037, 5'000}) {
    const auto fill = [&] {
      for (std::int64_t i = 0; i < count; ++i) values.as<float>()[i] = static_cast<float>(i + all.rank());
    };
    fill();
    mpi_sum(values, all, largest);
    for (std::int64_t i = 0; i < count; ++i) ASSERT_EQ(values.as<float>()[i], sum(i)) << largest;
    fill();
    mpi_reduce_scatter(values, all, largest);
    for (std::int64_t i = own.first; i < own.first + own.count; ++i) {
      ASSERT_EQ(values.as<float>()[i], sum(i)) << largest;
    }
    for (std::int64_t i = 0; i < count; ++i) {
      if (i < own.first || i >= own.first + own.count) values.as<float>()[i] = -1;
    }
    mpi_all_gather(values, all, largest);
    for (std::int64_t i = 0; i < count; ++i) ASSERT_EQ(values.as<float>()[i], sum(i)) << largest;
  }
}

}  // namespace lockstep::sharded_exchange_test
