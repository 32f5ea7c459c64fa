// The choice of reducers in a build with CUDA.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "comm/all_reducer.hpp"
#include "comm/check_mpi.hpp"
#include "comm/nccl_all_reducer.hpp"
#include "comm/staged_all_reducer.hpp"
#include "device/cuda/check_cuda.hpp"
#include "device/cuda/cuda_device.hpp"

namespace lockstep {
namespace {

// "gpu07, GPU 00000000:1B:00.0": the same for two ranks if and only if they drive the same GPU.
std::string gpu_of_this_rank() {
  int device = 0;
  cuda::check_cuda(cudaGetDevice(&device), "tell which GPU this rank drives");
  std::array<char, 32> address{};
  cuda::check_cuda(cudaDeviceGetPCIBusId(address.data(), static_cast<int>(address.size()), device),
                   "tell where a GPU sits");
  std::array<char, MPI_MAX_PROCESSOR_NAME> host{};
  int length = 0;
  check_mpi(MPI_Get_processor_name(host.data(), &length), "tell this node's name");
  return fmt::format("{}, GPU {}", host.data(), address.data());
}

// A GPU that two ranks drive, or nothing.
std::string shared_gpu(const Communicator& world) {
  std::vector<std::string> gpus = world.all_gather(gpu_of_this_rank());
  std::ranges::sort(gpus);
  const auto twice = std::ranges::adjacent_find(gpus);
  return twice == gpus.end() ? std::string() : *twice;
}

}  // namespace

std::unique_ptr<AllReducer> make_all_reducer(const std::string& name, Device& device, const Communicator& world,
                                             std::int64_t bytes, DType wire) {
  const auto* const gpu = dynamic_cast<cuda::CudaDevice*>(&device);
  require(gpu != nullptr || name != "nccl", Failure::usage,
          "NCCL sums between GPUs, and this device is a CPU (--reduce nccl). Use --reduce auto?");
  if (gpu != nullptr && (name == "auto" || name == "nccl")) {
    const std::string shared = shared_gpu(world);
    require(shared.empty() || name == "auto", Failure::usage,
            "two ranks drive one GPU ({}), which NCCL cannot connect (--reduce nccl). Start one rank for each GPU, or "
            "use --reduce mpi?",
            shared);
    if (shared.empty()) return make_nccl_all_reducer(device, gpu->stream(), world, wire);
  }
  require_full_wire(wire);
  if (gpu == nullptr) return make_cpu_all_reducer(name, world, bytes);
  return make_staged_all_reducer(device, gpu->stream(), make_cpu_all_reducer(name, world, bytes));
}

}  // namespace lockstep
