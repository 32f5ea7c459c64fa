// What a profiler for NVTX sees of layers and phases.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <ranges>
#include <stdexcept>
#include <string>
#include <vector>

#include "device/profiler_range.hpp"
#include "models/counter_values.hpp"
#include "models/test_net.hpp"
#include "nn/initialize.hpp"
#include "runtime/watch/rank_status.hpp"
#include "support/program.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::test {
namespace {

using ::testing::ElementsAre;

// NVTX loads its profiler at the first call, so all tests of this program share one file.
class ProfilerRanges : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    setenv("NVTX_INJECTION64_PATH", built_program("libnoted_ranges.so").c_str(), 1);
    setenv("LOCKSTEP_NOTED_RANGES", file().c_str(), 1);
  }
  static std::string file() {
    static const TemporaryFolder folder;
    return (folder.path() / "ranges").string();
  }

  // Calls since the last call of this function, without the number of the thread, which must be this one.
  static std::vector<std::string> noted() {
    static std::streamoff read = 0;
    std::ifstream lines(file());
    lines.seekg(read);
    std::vector<std::string> calls;
    const std::string thread = std::to_string(gettid()) + " ";
    for (std::string line; std::getline(lines, line); read += std::ssize(line) + 1) {
      EXPECT_TRUE(line.starts_with(thread)) << line;
      calls.push_back(line.substr(thread.size()));
    }
    return calls;
  }
};

TEST_F(ProfilerRanges, each_layer_has_one_in_each_direction) {
  TestNet net({"lenet", {32, 32, 3}, 10});
  initialize(net.store, 1);
  const Tensor images = make_images(*net.device, {2, 32, 32, 3}, counter_uniform(0, 2 * 32 * 32 * 3));
  const Tensor labels = make_labels(*net.device, std::vector<float>{0, 1});
  RecordingSink sink;
  noted();
  net.pass(images, labels, sink);
  const std::vector<std::string> layers = {"conv1",     "MaxPool_3", "conv2", "MaxPool_6",
                                           "Flatten_7", "fc1",       "fc2",   "fc3"};
  std::vector<std::string> expected;
  for (const std::string& layer : layers) expected.insert(expected.end(), {"push forward " + layer, "pop"});
  for (const std::string& layer : std::views::reverse(layers)) {
    expected.insert(expected.end(), {"push backward " + layer, "pop"});
  }
  EXPECT_EQ(noted(), expected);
}

TEST_F(ProfilerRanges, they_end_with_an_exception) {
  try {
    const ProfilerRange outer("outer");
    const ProfilerRange inner("inner");
    throw std::runtime_error("as a layer may");
  } catch (const std::runtime_error&) {
  }
  EXPECT_THAT(noted(), ElementsAre("push outer", "push inner", "pop", "pop"));
}

// A batch norm that is synchronized enters a phase within a layer.
TEST_F(ProfilerRanges, phases_follow_each_other_whatever_nests) {
  rank_status::enter(Phase::reading);
  noted();
  {
    const ProfilerRange layer("layer");
    rank_status::enter(Phase::sharing_norms);
    rank_status::begin_sum();
    rank_status::end_sum();
  }
  rank_status::enter(Phase::backward);
  EXPECT_THAT(noted(), ElementsAre("push layer", "end waiting for data", "start gathering statistics of norms",
                                   "start starting a sum", "end starting a sum", "pop",
                                   "end gathering statistics of norms", "start in backward"));
}

}  // namespace
}  // namespace lockstep::test
