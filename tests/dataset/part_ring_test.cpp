#include "dataset/part_ring.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"

namespace lockstep {
namespace {

constexpr SampleShape shape{2, 2, 1};

TEST(PartRing, throws_to_the_caller_what_a_thread_threw_behind_the_parts_that_were_whole) {
  PartRing ring(
      [](std::int64_t part, Batch& batch) {
        if (part == 2) throw Error(Failure::bad_data, "sample 7 is damaged.");
        batch.samples = part;
      },
      1, shape, 1);
  EXPECT_EQ(ring.next().samples, 0);
  EXPECT_EQ(ring.next().samples, 1);
  try {
    ring.next();
    FAIL() << "nothing thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.failure(), Failure::bad_data);
    EXPECT_STREQ(error.what(), "sample 7 is damaged.");
  }
}

TEST(PartRing, hands_parts_out_in_order_whichever_thread_is_first) {
  PartRing ring([](std::int64_t part, Batch& batch) { batch.samples = part; }, 1, shape, 4);
  for (std::int64_t part = 0; part < 2000; ++part) ASSERT_EQ(ring.next().samples, part);
}

}  // namespace
}  // namespace lockstep
