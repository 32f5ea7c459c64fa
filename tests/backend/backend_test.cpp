#include "backend/backend.hpp"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <mpi.h>

#include <filesystem>
#include <string>

#include "backend/versions.hpp"
#include "dataset/dataset.hpp"
#include "support/message_of.hpp"
#include "support/messages.hpp"
#include "support/samples/small_data_set.hpp"

namespace lockstep::backend_test {

std::unique_ptr<Backend> cpu() { return open_backend({.name = "cpu", .threads = 1}); }

std::string refusal(const std::string& name) {
  return message_of(Failure::usage, [&] { open_backend({.name = name}); });
}

TEST(OpenBackend, opens_the_cpu_by_name_and_by_itself) {
  for (const char* name : {"cpu", "auto"}) {
    if (std::string(name) == "auto" && !visible_gpus().empty()) continue;
    EXPECT_THAT(open_backend({.name = name, .threads = 1})->device().description(),
                testing::MatchesRegex("cpu: .+, (AVX-512|AVX2|SSE2), 1 thread"));
  }
}

TEST(OpenBackend, says_why_no_gpu_can_be_used) {
  if (!visible_gpus().empty()) GTEST_SKIP() << "there is one";
  // In a build without CUDA; without a driver; with one, but nothing behind it.
  EXPECT_THAT(refusal("cuda"),
              testing::AnyOf(testing::HasSubstr("--device cpu"), testing::HasSubstr("CUDA_VISIBLE_DEVICES")));
}

TEST(OpenBackend, names_the_devices_there_are) { expect_message(refusal("tpu"), {"--device", "tpu"}); }

class CpuBackendTest : public testing::Test {
 protected:
  std::string reducer_refusal(const std::string& name, DType wire) {
    return message_of(Failure::usage, [&] { backend_->make_reducer(name, world_, 4, wire); });
  }

  const Communicator world_{MPI_COMM_WORLD};
  const std::unique_ptr<Backend> backend_ = cpu();
};

TEST_F(CpuBackendTest, sums_in_the_hosts_memory) {
  for (const char* name : {"auto", "mpi", "shared"}) {
    EXPECT_EQ(backend_->make_reducer(name, world_, 4, DType::f32)->description(),
              make_cpu_all_reducer(name, world_, 4)->description());
  }
}

// They take 0.1 s, which every start would wait for.
TEST_F(CpuBackendTest, loads_no_libraries_of_gpus) {
  const auto versions = versions_used(backend_->libraries());
  EXPECT_EQ(versions.at("lockstep"), lockstep_version());
  EXPECT_TRUE(versions.contains("HDF5"));
  EXPECT_FALSE(versions.contains("cuDNN"));
  for (const char* name : {"libcublasLt.so.12", "libcublasLt.so.13", "libcudnn_graph.so.9"}) {
    EXPECT_EQ(::dlopen(name, RTLD_LAZY | RTLD_NOLOAD), nullptr) << name;
  }
}

TEST_F(CpuBackendTest, has_no_nccl) {
  EXPECT_THAT(reducer_refusal("nccl", DType::f32),
              testing::AllOf(testing::HasSubstr("--reduce nccl"), testing::HasSubstr("--reduce auto")));
}

TEST_F(CpuBackendTest, sums_what_travels_whole) { expect_message(reducer_refusal("shared", DType::bf16), {"--wire"}); }

TEST_F(CpuBackendTest, has_its_data_in_the_hosts_memory) {
  const auto folder = std::filesystem::path(testing::TempDir()) / ("backend_test_" + std::to_string(world_.size()));
  if (world_.rank() == 0) write_small_data_set(folder, {8, 8, 3}, 20, 20);
  world_.barrier();
  {
    const Dataset dataset(folder);
    const LoaderSource source = evaluation_source(dataset, {{8, 8}}, 10, 0, 1, 1);
    for (const DataPlace place : {DataPlace::automatic, DataPlace::host}) {
      EXPECT_EQ(backend_->load_onto(source, place)->next().samples, 10);
    }
    expect_error(Failure::usage, {"--data-on"}, [&] { backend_->load_onto(source, DataPlace::device); });
  }
  world_.barrier();
  if (world_.rank() == 0) std::filesystem::remove_all(folder);
}

}  // namespace lockstep::backend_test
