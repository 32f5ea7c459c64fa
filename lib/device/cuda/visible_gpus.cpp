#include "device/cuda/visible_gpus.hpp"

#include <array>

#include "device/cuda/check_cuda.hpp"

namespace lockstep::cuda {

std::vector<std::string> visible_gpus() {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess) return {};
  std::vector<std::string> addresses;
  for (int index = 0; index < count; ++index) addresses.push_back(address_of_gpu(index));
  return addresses;
}

std::string address_of_gpu(int index) {
  std::array<char, 32> address{};
  check_cuda(cudaDeviceGetPCIBusId(address.data(), static_cast<int>(address.size()), index), "tell where a GPU sits");
  return address.data();
}

}  // namespace lockstep::cuda
