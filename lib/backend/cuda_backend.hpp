// The backend for one GPU.
#pragma once

#include "backend/backend.hpp"
#include "comm/nccl_all_reducer.hpp"
#include "device/cuda/cuda_device.hpp"

namespace lockstep {

class CudaBackend final : public Backend {
 public:
  // Throws Error(usage) with the reason if no GPU can be used.
  explicit CudaBackend(const DeviceOptions& options)
      : device_(options), order_(options.fixed_order ? SumOrder::fixed : SumOrder::fastest) {}

  Device& device() override { return device_; }
  std::vector<LibraryVersion> libraries() const override { return backend_libraries(); }
  std::unique_ptr<AllReducer> make_reducer(const std::string& name, const Communicator& world, std::int64_t bytes,
                                           DType wire) override;
  std::unique_ptr<Loader> load_onto(const LoaderSource& source, DataPlace place) override;

 private:
  cuda::CudaDevice device_;
  SumOrder order_;
};

}  // namespace lockstep
