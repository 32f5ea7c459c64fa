#include "dataset/loading/part_ring.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"

namespace lockstep {
namespace {

// What a part holds is the caller's affair.
struct Number {
  std::int64_t value = -1;
};

TEST(PartRing, throws_to_the_caller_what_a_thread_threw_behind_the_parts_that_were_whole) {
  PartRing<Number> ring([] { return Number(); },
                        [](std::int64_t part, Number& number) {
                          if (part == 2) throw Error(Failure::bad_data, "sample 7 is damaged.");
                          number.value = part;
                        },
                        1);
  EXPECT_EQ(ring.next().value, 0);
  EXPECT_EQ(ring.next().value, 1);
  try {
    ring.next();
    FAIL() << "nothing thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.failure(), Failure::bad_data);
    EXPECT_STREQ(error.what(), "sample 7 is damaged.");
  }
}

TEST(PartRing, hands_parts_out_in_order_whichever_thread_is_first) {
  PartRing<Number> ring([] { return Number(); }, [](std::int64_t part, Number& number) { number.value = part; }, 4);
  for (std::int64_t part = 0; part < 2000; ++part) ASSERT_EQ(ring.next().value, part);
}

}  // namespace
}  // namespace lockstep
