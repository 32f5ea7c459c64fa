#include "step/bucket_size.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <limits>
#include <thread>

#include "device/cpu/cpu_device.hpp"

namespace lockstep::bucket_size_test {

constexpr std::int64_t mebibyte = 1 << 20;

// Takes as long as it is told.
class SlowReducer final : public AllReducer {
 public:
  explicit SlowReducer(const ReductionCost& speed) : speed_(speed) {}
  Tensor allocate(std::int64_t, DType) override { return {}; }
  void start_sum(const Tensor& values) override {
    const double seconds = speed_.latency_seconds + static_cast<double>(values.bytes()) / speed_.bytes_per_second;
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  }
  SlicePart part_of(const Tensor& values, int) const override { return {0, values.shape()[0]}; }
  void start_reduce_scatter(const Tensor& values) override { start_sum(values); }
  void start_all_gather(const Tensor& values) override { start_sum(values); }
  void wait() override {}
  std::string description() const override { return "slow"; }

 private:
  ReductionCost speed_;
};

TEST(BucketSize, a_tenth_of_a_buckets_time_is_latency) {
  EXPECT_EQ(choose_bucket_bytes({20e-6, 10e9}), 2 * mebibyte);    // 1.8 MB
  EXPECT_EQ(choose_bucket_bytes({10e-6, 200e9}), 32 * mebibyte);  // 18 MB
  EXPECT_EQ(choose_bucket_bytes({1e-6, 1e9}), 1 * mebibyte);      // 9 kB: the least
  EXPECT_EQ(choose_bucket_bytes({1e-3, 400e9}), 64 * mebibyte);   // 3.6 GB: the most
  EXPECT_EQ(choose_bucket_bytes({0, std::numeric_limits<double>::infinity()}) % mebibyte, 0);
}

TEST(BucketSize, latency_and_bandwidth_are_told_apart) {
  const auto device = cpu::open_cpu_device({.threads = 1});
  const Communicator world(MPI_COMM_WORLD);
  SlowReducer reducer({20e-3, 0.2e9});  // slow enough for a busy machine
  const ReductionCost speed =
      measure_reduction(reducer, world, *device, device->make_persistent(5 * mebibyte, DType::f32));
  EXPECT_NEAR(speed.latency_seconds, 20e-3, 10e-3);
  EXPECT_NEAR(speed.bytes_per_second, 0.2e9, 0.1e9);
}

TEST(BucketSize, a_tiny_net_is_no_trouble) {
  const auto device = cpu::open_cpu_device({.threads = 1});
  const Communicator world(MPI_COMM_WORLD);
  const auto reducer = make_cpu_all_reducer("auto", world, 64);
  const ReductionCost speed = measure_reduction(*reducer, world, *device, reducer->allocate(16));
  EXPECT_GE(choose_bucket_bytes(speed), mebibyte);
}

}  // namespace lockstep::bucket_size_test
