// What a program computes with: a device, and what must know of which kind it is: how gradients are summed between
// ranks, and how samples come into its memory. One implementation for each kind of device, chosen by open_backend().
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "comm/all_reducer.hpp"
#include "dataset/loading/loader.hpp"
#include "device/device.hpp"

namespace lockstep {

class Backend {
 public:
  virtual ~Backend() = default;

  virtual Device& device() = 0;

  // Collective. Sums of at most `bytes` in the device's memory. `name`: auto | nccl | mpi | shared. On a GPU `auto`
  // takes NCCL, unless two ranks share one, and the others carry the values through the host; on the CPU, see
  // make_cpu_all_reducer(). `wire`: how rounded sums travel, f32 or (NCCL) bf16. The reducer goes before the backend.
  // Throws Error(usage) for an unknown name, or for NCCL or a wire where it cannot be.
  virtual std::unique_ptr<AllReducer> make_reducer(const std::string& name, const Communicator& world,
                                                   std::int64_t bytes, DType wire) = 0;

  // Batches of `source` in the device's memory. The CPU reads shards where they lie, in the host's memory. The loader
  // goes before the backend. Throws Error(usage) for DataPlace::device on a CPU, Error(out_of_memory) where a split
  // does not fit.
  virtual std::unique_ptr<Loader> load_onto(const LoaderSource& source, DataPlace place) = 0;
};

// By DeviceOptions::name. Throws Error(usage) for an unknown name or a device that this machine lacks.
std::unique_ptr<Backend> open_backend(const DeviceOptions& options);

// PCI addresses of the GPUs that this process may use, in CUDA's order. Opens none of them.
std::vector<std::string> visible_gpus();

// A library, and the version that is loaded.
struct LibraryVersion {
  std::string name;
  std::string version;
};
// Those that only a backend needs.
std::vector<LibraryVersion> backend_libraries();

}  // namespace lockstep
