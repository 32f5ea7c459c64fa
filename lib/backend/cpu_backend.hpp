// The backend for devices with host memory.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "backend/backend.hpp"

namespace lockstep {

class CpuBackend final : public Backend {
 public:
  // `device` keeps its tensors in host memory. `no_nccl`: the reason given when a user asks for NCCL.
  explicit CpuBackend(std::unique_ptr<Device> device, std::string no_nccl = "this build has no NCCL")
      : device_(std::move(device)), no_nccl_(std::move(no_nccl)) {}

  Device& device() override { return *device_; }
  std::vector<LibraryVersion> libraries() const override { return {}; }
  std::unique_ptr<AllReducer> make_reducer(const std::string& name, const Communicator& world, std::int64_t bytes,
                                           DType wire) override;
  std::unique_ptr<Loader> load_onto(const LoaderSource& source, DataPlace place) override;

 private:
  std::unique_ptr<Device> device_;
  std::string no_nccl_;
};

}  // namespace lockstep
