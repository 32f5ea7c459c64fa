#include "device/arena.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "device/tensor.hpp"
#include "support/messages.hpp"

namespace lockstep::arena_test {

class ArenaTest : public testing::Test {
 protected:
  static constexpr std::int64_t capacity = 4096;

  std::int64_t place(const ArenaBlock* block) const { return block->data - memory_.data(); }

  alignas(Arena::alignment) std::array<std::byte, capacity> memory_{};
  Arena arena_{memory_.data(), capacity};
};

TEST_F(ArenaTest, blocks_are_aligned_and_hold_odd_sizes) {
  std::int64_t expected = 0;
  for (const std::int64_t bytes : {1, 63, 64, 65, 200}) {
    const ArenaBlock* block = arena_.allocate(bytes);
    EXPECT_EQ(place(block), expected);
    EXPECT_GE(block->bytes, bytes);
    EXPECT_EQ(block->bytes % Arena::alignment, 0);
    expected += block->bytes;
  }
  EXPECT_EQ(arena_.used_bytes(), 64 + 64 + 64 + 128 + 256);
}

TEST_F(ArenaTest, blocks_are_aligned_as_a_device_requires) {
  constexpr std::int64_t alignment = 256;
  alignas(alignment) std::array<std::byte, capacity> memory{};
  Arena arena(memory.data(), capacity - 1, alignment);
  EXPECT_EQ(arena.largest_free_bytes(), capacity - alignment);
  for (const std::int64_t bytes : {1, 256, 257, 0}) {
    const ArenaBlock* block = arena.allocate(bytes);
    EXPECT_EQ((block->data - memory.data()) % alignment, 0) << bytes;
    EXPECT_EQ(block->bytes % alignment, 0) << bytes;
  }
  EXPECT_EQ(arena.used_bytes(), 256 + 256 + 512 + 256);
}

// Copies of a whole tensor went past the end of memory that was as large as its elements.
TEST_F(ArenaTest, a_tensor_has_the_bytes_it_was_made_for_and_not_those_of_its_block) {
  for (int again = 0; again < 2; ++again) {
    const Tensor tensor(arena_.allocate(25 * size_of(DType::f32)), Shape{25}, DType::f32, Layout::plain);
    EXPECT_EQ(tensor.bytes(), 100);
    EXPECT_EQ(arena_.used_bytes(), 128);
  }
  EXPECT_EQ(arena_.used_bytes(), 0);
}

TEST_F(ArenaTest, an_empty_block_has_an_address_of_its_own) {
  const ArenaBlock* empty = arena_.allocate(0);
  EXPECT_NE(place(arena_.allocate(8)), place(empty));
}

TEST_F(ArenaTest, a_freed_range_serves_the_next_request_that_fits) {
  ArenaBlock* first = arena_.allocate(128);
  arena_.allocate(64);
  arena_.release(first);
  EXPECT_EQ(place(arena_.allocate(192)), 192) << "too large for the gap";
  EXPECT_EQ(place(arena_.allocate(64)), 0);
  EXPECT_EQ(place(arena_.allocate(64)), 64);
}

TEST_F(ArenaTest, neighbours_that_are_free_become_one_range_in_any_order) {
  for (const std::array<std::size_t, 3>& order :
       {std::array<std::size_t, 3>{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}}) {
    std::array<ArenaBlock*, 3> blocks{};
    for (ArenaBlock*& block : blocks) block = arena_.allocate(1024);
    for (const std::size_t i : order) arena_.release(blocks[i]);
    ArenaBlock* whole = arena_.allocate(capacity);
    EXPECT_EQ(place(whole), 0);
    arena_.release(whole);
  }
  EXPECT_EQ(arena_.used_bytes(), 0);
}

TEST_F(ArenaTest, the_same_requests_get_the_same_addresses) {
  const auto step = [this] {
    std::vector<std::int64_t> places;
    std::vector<ArenaBlock*> held;
    for (const std::int64_t bytes : {100, 300, 50, 700, 20}) {
      held.push_back(arena_.allocate(bytes));
      places.push_back(place(held.back()));
      if (held.size() == 3) {
        arena_.release(held[1]);
        held.erase(held.begin() + 1);
      }
    }
    for (ArenaBlock* block : held) arena_.release(block);
    return places;
  };
  const std::vector<std::int64_t> first = step();
  EXPECT_EQ(step(), first);
  EXPECT_EQ(step(), first);
}

TEST_F(ArenaTest, the_peak_is_the_highest_end_of_any_block) {
  ArenaBlock* first = arena_.allocate(1024);
  ArenaBlock* second = arena_.allocate(512);
  arena_.release(second);
  arena_.release(first);
  arena_.allocate(64);
  EXPECT_EQ(arena_.peak_bytes(), 1536);
  EXPECT_EQ(arena_.used_bytes(), 64);
}

TEST_F(ArenaTest, the_last_tensor_gives_its_block_back) {
  {
    const Tensor tensor(arena_.allocate(64), Shape{16}, DType::f32, Layout::plain);
    Tensor copy = tensor;
    EXPECT_EQ(arena_.used_bytes(), 64);
    copy = Tensor();
    EXPECT_EQ(arena_.used_bytes(), 64);
  }
  EXPECT_EQ(arena_.used_bytes(), 0);
}

#ifdef __SANITIZE_ADDRESS__
TEST(GuardedArenaTest, accesses_outside_of_blocks_are_found) {
  alignas(Arena::alignment) std::array<std::byte, 4096> memory{};
  {
    Arena arena(memory.data(), memory.size());
    arena.release(arena.allocate(100));
    ArenaBlock* const first = arena.allocate(40);
    ArenaBlock* const second = arena.allocate(128);
    std::fill_n(first->data, 40, std::byte{1});
    std::fill_n(second->data, 128, std::byte{1});
    EXPECT_DEATH(first->data[40] = std::byte{1}, "use-after-poison");
    EXPECT_DEATH(second->data[128] = std::byte{1}, "use-after-poison");
    arena.release(second);
    EXPECT_DEATH(second->data[0] = std::byte{1}, "use-after-poison");
    arena.release(first);
    ArenaBlock* const whole = arena.allocate(memory.size());
    std::fill_n(whole->data, memory.size(), std::byte{1});
    arena.release(whole);
  }
  memory.fill(std::byte{1});
}
#endif

class SeparateBlocksTest : public ArenaTest {
 protected:
  std::vector<std::int64_t> asked_;
  Arena separate_{[this](std::int64_t bytes) {
                    asked_.push_back(bytes);
                    return memory_.data() + (asked_.size() - 1) * 1024;
                  },
                  capacity, Arena::alignment};
};

TEST_F(SeparateBlocksTest, each_block_has_memory_of_its_exact_size) {
  ArenaBlock* const first = separate_.allocate(100);
  ArenaBlock* const second = separate_.allocate(101);
  EXPECT_EQ(place(second), 1024);
  separate_.release(first);
  EXPECT_EQ(place(separate_.allocate(65)), 2048) << "memory is used again for the same size only";
  EXPECT_EQ(separate_.allocate(100), first);
  EXPECT_EQ(place(separate_.allocate(0)), 3072);
  EXPECT_EQ(asked_, (std::vector<std::int64_t>{100, 101, 65, 1}));
  EXPECT_EQ(separate_.used_bytes(), 3 * 128 + 64);
  EXPECT_EQ(separate_.peak_bytes(), 3 * 128 + 64);
}

TEST_F(SeparateBlocksTest, they_fit_into_the_capacity_together) {
  EXPECT_EQ(separate_.largest_free_bytes(), capacity);
  ArenaBlock* const large = separate_.allocate(capacity - 64);
  separate_.release(large);
  EXPECT_EQ(separate_.largest_free_bytes(), capacity - 64);
  EXPECT_EQ(separate_.used_bytes(), 0);
  for (const std::int64_t bytes : {std::int64_t{65}, std::numeric_limits<std::int64_t>::max()}) {
    expect_error(Failure::out_of_memory, {"--accumulate"}, [&] { separate_.allocate(bytes); });
  }
  EXPECT_NE(separate_.allocate(64), nullptr);
  EXPECT_EQ(separate_.allocate(capacity - 64), large);
}

TEST_F(ArenaTest, says_how_much_was_asked_for_when_memory_is_out) {
  Arena large(memory_.data(), capacity);
  large.allocate(2048);
  try {
    large.allocate(std::int64_t{3} << 20);
    FAIL() << "served more than it has";
  } catch (const Error& error) {
    EXPECT_EQ(error.failure(), Failure::out_of_memory);
    expect_message(error.what(), {"3.0 MiB", "--accumulate"});
  }
  EXPECT_EQ(large.used_bytes(), 2048);
}

TEST_F(ArenaTest, tells_the_most_that_it_can_serve_at_once) {
  EXPECT_EQ(arena_.largest_free_bytes(), capacity);
  ArenaBlock* first = arena_.allocate(128);
  arena_.allocate(64);
  EXPECT_EQ(arena_.largest_free_bytes(), capacity - 192);
  arena_.release(first);
  EXPECT_EQ(arena_.largest_free_bytes(), capacity - 192) << "a hole of 128 bytes is the smaller one";
}

TEST_F(ArenaTest, refuses_a_size_that_no_memory_has) {
  EXPECT_THROW(arena_.allocate(std::numeric_limits<std::int64_t>::max()), Error);
  EXPECT_EQ(place(arena_.allocate(capacity)), 0) << "nothing was taken";
}

TEST(ShapeTest, prints_its_sizes) {
  EXPECT_EQ((Shape{128, 32, 32, 16}.text()), "[128, 32, 32, 16]");
  EXPECT_EQ(Shape{}.text(), "[]");
}

}  // namespace lockstep::arena_test
