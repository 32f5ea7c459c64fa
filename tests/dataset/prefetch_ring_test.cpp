#include "dataset/loading/prefetch_ring.hpp"

#include <gtest/gtest.h>

#include <atomic>

#include "base/error.hpp"

namespace lockstep::prefetch_ring_test {

// What a micro-batch holds is the caller's affair.
struct Number {
  std::int64_t value = -1;
};

TEST(PrefetchRing, throws_to_the_caller_what_a_thread_threw_behind_the_parts_that_were_whole) {
  PrefetchRing<Number> ring([] { return Number(); },
                            [](std::int64_t micro_batch, Number& number) {
                              if (micro_batch == 2) throw Error(Failure::bad_data, "sample 7 is damaged.");
                              number.value = micro_batch;
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

TEST(PrefetchRing, hands_parts_out_in_order_whichever_thread_is_first) {
  PrefetchRing<Number> ring([] { return Number(); },
                            [](std::int64_t micro_batch, Number& number) { number.value = micro_batch; }, 4);
  for (std::int64_t micro_batch = 0; micro_batch < 2000; ++micro_batch) ASSERT_EQ(ring.next().value, micro_batch);
}

TEST(PrefetchRing, fills_only_what_is_allowed) {
  std::atomic<std::int64_t> filled = 0;
  PrefetchRing<Number> ring([] { return Number(); },
                            [&](std::int64_t micro_batch, Number& number) {
                              number.value = micro_batch;
                              ++filled;
                            },
                            2, PrefetchTrigger::allowed);
  for (std::int64_t micro_batch = 0; micro_batch < 100; ++micro_batch) {
    ring.allow_one();
    EXPECT_EQ(ring.next().value, micro_batch);
    EXPECT_EQ(filled, micro_batch + 1);
  }
}

}  // namespace lockstep::prefetch_ring_test
