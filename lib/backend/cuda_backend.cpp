#include "backend/cuda_backend.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "base/error.hpp"
#include "comm/check_mpi.hpp"
#include "comm/cuda_staged_all_reducer.hpp"
#include "dataset/loading/cuda_loader.hpp"
#include "device/cuda/check_cuda.hpp"
#include "device/cuda/visible_gpus.hpp"
#include "runtime/failure/contained_failure.hpp"

namespace lockstep {
namespace {

// "gpu07, GPU 00000000:1B:00.0": equal on two ranks if and only if they use the same GPU, or slices of it (MIG). NCCL
// compares PCI addresses, too, and refuses both.
std::string gpu_of_this_rank() {
  int index = 0;
  cuda::check_cuda(cudaGetDevice(&index), "tell which GPU this rank drives");
  std::array<char, MPI_MAX_PROCESSOR_NAME> host{};
  int length = 0;
  check_mpi(MPI_Get_processor_name(host.data(), &length), "tell this node's name");
  return fmt::format("{}, GPU {}", host.data(), cuda::address_of_gpu(index));
}

// A GPU that two ranks use; empty if there is none.
std::string shared_gpu(const Communicator& world) {
  std::vector<std::string> gpus = world.all_gather(gpu_of_this_rank());
  std::ranges::sort(gpus);
  const auto twice = std::ranges::adjacent_find(gpus);
  return twice == gpus.end() ? std::string() : *twice;
}

}  // namespace

std::unique_ptr<AllReducer> CudaBackend::make_reducer(const std::string& name, const Communicator& world,
                                                      std::int64_t bytes, DType wire) {
  if (name == "auto" || name == "nccl") {
    const std::string shared = shared_gpu(world);
    on_all_ranks(world, [&] {
      require(
          shared.empty() || name == "auto", Failure::usage,
          "two ranks use one GPU ({}) or slices of it, which NCCL does not support (--reduce nccl). Start one rank per "
          "GPU, or use --reduce mpi.",
          shared);
    });
    if (shared.empty()) return make_nccl_all_reducer(device_, device_.stream(), world, {wire, order_});
  }
  on_all_ranks(world, [&] { require_full_wire(wire); });
  return make_cuda_staged_all_reducer(device_, device_.stream(), world.rank(),
                                      make_cpu_all_reducer(name, world, bytes));
}

std::unique_ptr<Loader> CudaBackend::load_onto(const LoaderSource& source, DataPlace place) {
  const bool can_stay = can_be_resident(source);
  require(can_stay || place != DataPlace::device, Failure::usage,
          "--data-on device does not support images of various sizes, resizing, or color augmentation. Use --data-on "
          "host.");
  const bool stays = place == DataPlace::device || (place == DataPlace::automatic && can_stay &&
                                                    resident_bytes(*source.dataset) <= device_.free_bytes() / 4);
  return make_cuda_loader(device_, source, stays ? PixelSource::resident : PixelSource::travelling);
}

}  // namespace lockstep
