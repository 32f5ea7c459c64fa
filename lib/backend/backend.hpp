// A compute backend: a device, and the operations that depend on its kind. These are the gradient all-reduce and the
// transfer of samples into device memory. Each kind of device has one implementation, chosen by open_backend().
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "comm/all_reducer.hpp"
#include "dataset/loading/loader.hpp"
#include "device/device.hpp"

namespace lockstep {

// A library and its loaded version.
struct LibraryVersion {
  std::string name;
  std::string version;
};

class Backend {
 public:
  virtual ~Backend() = default;

  virtual Device& device() = 0;

  // Those that only this kind of device uses.
  virtual std::vector<LibraryVersion> libraries() const = 0;

  // Collective. A reducer for at most `bytes` of gradients and weights in device memory. `name`: auto | nccl | mpi |
  // shared. On a GPU, `auto` uses NCCL unless two ranks share a GPU; the other choices copy the values through the
  // host. On the CPU, see make_cpu_all_reducer(). `wire`: type in which rounded sums are sent, f32 or (NCCL only) bf16.
  // The reducer must not outlive the backend. Throws AgreedError(usage) for an unknown name, and for NCCL or a wire
  // that is not available here.
  virtual std::unique_ptr<AllReducer> make_reducer(const std::string& name, const Communicator& world,
                                                   std::int64_t bytes, DType wire) = 0;

  // Loads batches of `source` into device memory. The CPU reads shards in place, in host memory. The loader must not
  // outlive the backend. Throws Error(usage) for DataPlace::device on a CPU, Error(out_of_memory) if a split does not
  // fit.
  virtual std::unique_ptr<Loader> load_onto(const LoaderSource& source, DataPlace place) = 0;
};

// Selects by DeviceOptions::name. Throws Error(usage) for an unknown name or a device that this machine lacks.
std::unique_ptr<Backend> open_backend(const DeviceOptions& options);

// UUIDs of the GPUs or GPU slices that this process may use, in CUDA's order. Does not open any of them.
std::vector<std::string> visible_gpus();

// Why visible_gpus() is empty.
struct NoGpu {
  Failure failure = Failure::usage;  // bad_node: another node may have a GPU
  std::string reason;
};
// Call it only if visible_gpus() is empty.
NoGpu why_no_gpu();

// Backend::libraries() of all devices in this build. "not found": this node has none that can be loaded.
std::vector<LibraryVersion> backend_libraries();

}  // namespace lockstep
