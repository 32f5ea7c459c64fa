// The CUDA runtime of the simulated GPU: what it refuses, and in which orders it runs what it accepts.
#include <array>
#include <cstdio>
#include <set>

#include "support/simulated_gpu/simulated_fixture.hpp"

namespace lockstep::simulated {
namespace {

TEST_F(SimulatedRuntimeTest, a_copy_stays_within_the_exact_size_of_both_sides) {
  std::byte* const device = device_memory(256);
  std::byte* const pinned = pinned_memory(104);
  EXPECT_EQ(to_host(pinned, device, 104, main_), cudaSuccess);
  EXPECT_EQ(to_host(pinned, device, 256, main_), cudaErrorInvalidValue);
  EXPECT_EQ(to_host(pinned, device + 200, 57, main_), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemsetAsync(device + 1, 0, 256, main_), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess) << "this error is reported once";
}

TEST_F(SimulatedRuntimeTest, a_copy_names_the_direction_of_its_sides) {
  std::byte* const device = device_memory(64);
  std::byte* const pinned = pinned_memory(64);
  EXPECT_EQ(cudaMemcpyAsync(pinned, device, 64, cudaMemcpyHostToDevice, main_), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpyAsync(device, pinned, 64, cudaMemcpyHostToDevice, main_), cudaSuccess);
}

TEST_F(SimulatedRuntimeTest, unwritten_memory_is_poisoned) {
  EXPECT_EQ(read(device_memory(3 << 20) + (2 << 20), main_), 0xFF);
  EXPECT_EQ(std::to_integer<int>(*pinned_memory(1)), 0xFF);
}

TEST_F(SimulatedRuntimeTest, work_beyond_its_memory_loses_the_device) {
  std::byte* const device = device_memory(256);
  EXPECT_EQ(launch(main_, [=] { device[256] = std::byte{1}; }), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(main_), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaGetLastError(), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaGetLastError(), cudaErrorIllegalAddress) << "such an error stays";
  void* memory = nullptr;
  EXPECT_EQ(cudaMalloc(&memory, 1), cudaErrorIllegalAddress);
}

TEST_F(SimulatedRuntimeTest, so_does_work_whose_accesses_are_counted) {
  Settings settings;
  settings.notes_traffic = true;
  start(settings);
  std::byte* const device = device_memory(256);
  EXPECT_EQ(launch(main_, [=] { device[255] = std::byte{1}; }), cudaSuccess);
  EXPECT_EQ(read(device + 255, main_), 1);
  EXPECT_EQ(launch(main_, [=] { device[256] = std::byte{1}; }), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(main_), cudaErrorIllegalAddress);
}

TEST_F(SimulatedRuntimeTest, work_on_freed_memory_loses_the_device) {
  std::byte* const device = device_memory(256);
  EXPECT_EQ(cudaFree(device), cudaSuccess);
  EXPECT_EQ(cudaFree(device), cudaErrorInvalidValue);
  EXPECT_EQ(launch(main_, [=] { device[0] = std::byte{1}; }), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(main_), cudaErrorIllegalAddress);
}

TEST_F(SimulatedRuntimeTest, the_host_cannot_read_device_memory) {
  const std::byte* const device = device_memory(256);
  EXPECT_DEATH(std::printf("%d", std::to_integer<int>(*static_cast<const volatile std::byte*>(device))), "");
}

TEST_F(SimulatedRuntimeTest, memory_ends) {
  std::size_t free = 0;
  std::size_t total = 0;
  ASSERT_EQ(cudaMemGetInfo(&free, &total), cudaSuccess);
  EXPECT_EQ(total, gpu().settings().memory_bytes);
  void* memory = nullptr;
  EXPECT_EQ(cudaMalloc(&memory, free + 1), cudaErrorMemoryAllocation);
  device_memory(100);
  std::size_t left = 0;
  ASSERT_EQ(cudaMemGetInfo(&left, &total), cudaSuccess);
  EXPECT_EQ(left, free - 100);
}

TEST_F(SimulatedRuntimeTest, there_are_two_devices_with_memory_of_their_own) {
  std::byte* const first = device_memory(64);
  int count = 0;
  ASSERT_EQ(cudaGetDeviceCount(&count), cudaSuccess);
  EXPECT_EQ(count, 2);
  EXPECT_EQ(cudaSetDevice(2), cudaErrorInvalidDevice);
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  EXPECT_EQ(set(first, 1, main_), cudaErrorInvalidValue);
  EXPECT_EQ(launch(main_, [] {}), cudaErrorInvalidResourceHandle) << "a stream of the other device";
  EXPECT_EQ(launch(make_stream(), [=] { *first = std::byte{1}; }), cudaSuccess);
  EXPECT_EQ(cudaGetLastError(), cudaErrorIllegalAddress);
  ASSERT_EQ(cudaSetDevice(0), cudaErrorIllegalAddress);
}

TEST_F(SimulatedRuntimeTest, registered_memory_is_pinned_once) {
  std::array<std::byte, 64> memory{};
  EXPECT_EQ(cudaHostRegister(memory.data(), 64, cudaHostRegisterPortable), cudaSuccess);
  EXPECT_EQ(cudaHostRegister(memory.data() + 8, 8, cudaHostRegisterPortable), cudaErrorHostMemoryAlreadyRegistered);
  EXPECT_EQ(to_host(memory.data() + 8, device_memory(64), 57, main_), cudaErrorInvalidValue);
  EXPECT_EQ(cudaHostUnregister(memory.data()), cudaSuccess);
  EXPECT_EQ(cudaHostUnregister(memory.data()), cudaErrorHostMemoryNotRegistered);
}

TEST_F(SimulatedRuntimeTest, a_late_copy_has_not_arrived_before_its_event) {
  start({.order = Order::late});
  std::byte* const device = device_memory(1);
  std::byte* const pinned = pinned_memory(1);
  ASSERT_EQ(set(device, 7, main_), cudaSuccess);
  ASSERT_EQ(to_host(pinned, device, 1, main_), cudaSuccess);
  cudaEvent_t const arrived = make_event();
  ASSERT_EQ(cudaEventRecord(arrived, main_), cudaSuccess);
  EXPECT_NE(*pinned, std::byte{7});
  EXPECT_EQ(cudaEventSynchronize(arrived), cudaSuccess);
  EXPECT_EQ(*pinned, std::byte{7});
}

TEST_F(SimulatedRuntimeTest, polling_sees_an_event_occur) {
  start({.order = Order::late});
  cudaEvent_t const event = make_event();
  EXPECT_EQ(cudaEventQuery(event), cudaSuccess) << "never recorded";
  for (int i = 0; i < 3; ++i) ASSERT_EQ(launch(main_, [] {}), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(event, main_), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(event), cudaErrorNotReady);
  EXPECT_EQ(cudaGetLastError(), cudaErrorNotReady);
  int polls = 1;
  while (cudaEventQuery(event) == cudaErrorNotReady) ++polls;
  EXPECT_EQ(polls, 4);
}

// Of two streams that write the same byte, either may be the last one, unless one waits for the other.
TEST_F(SimulatedRuntimeTest, orders_differ_unless_a_wait_forbids_it) {
  const auto last_writer = [&](const Settings& settings, bool waits) {
    start(settings);
    std::byte* const device = device_memory(1);
    cudaEvent_t const event = make_event();
    EXPECT_EQ(set(device, 1, main_), cudaSuccess);
    EXPECT_EQ(cudaEventRecord(event, main_), cudaSuccess);
    EXPECT_TRUE(!waits || cudaStreamWaitEvent(side_, event, 0) == cudaSuccess);
    EXPECT_EQ(set(device, 2, side_), cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(side_), cudaSuccess);
    return read(device, main_);
  };
  for (const Order order : {Order::direct, Order::late, Order::early, Order::random}) {
    EXPECT_EQ(last_writer({.order = order}, true), 2);
  }
  EXPECT_EQ(last_writer({.order = Order::late}, false), 1);
  EXPECT_EQ(last_writer({.order = Order::early}, false), 1);
  std::set<int> seen;
  for (std::uint64_t seed = 0; seed < 50; ++seed)
    seen.insert(last_writer({.order = Order::random, .seed = seed}, false));
  EXPECT_EQ(seen, (std::set{1, 2}));
}

TEST_F(SimulatedRuntimeTest, a_missing_wait_is_found_by_other_orders) {
  start({.order = Order::late, .fault = Fault::missing_wait});
  std::byte* const device = device_memory(1);
  cudaEvent_t const event = make_event();
  ASSERT_EQ(set(device, 1, main_), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(event, main_), cudaSuccess);
  ASSERT_EQ(cudaStreamWaitEvent(side_, event, 0), cudaSuccess);
  EXPECT_EQ(read(device, side_), 0xFF);
}

TEST_F(SimulatedRuntimeTest, a_timed_event_tells_the_simulated_time) {
  cudaEvent_t const start = make_event(cudaEventDefault);
  cudaEvent_t const end = make_event(cudaEventDefault);
  ASSERT_EQ(cudaEventRecord(start, main_), cudaSuccess);
  ASSERT_EQ(launch(main_, [] { gpu().spend(3); }), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(end, main_), cudaSuccess);
  float milliseconds = 0;
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, start, end), cudaSuccess);
  EXPECT_NEAR(milliseconds, 3, 0.1);
  cudaEvent_t const untimed = make_event();
  ASSERT_EQ(cudaEventRecord(untimed, main_), cudaSuccess);
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, start, untimed), cudaErrorInvalidResourceHandle);
}

}  // namespace
}  // namespace lockstep::simulated
