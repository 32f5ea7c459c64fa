#include "device/cuda/visible_gpus.hpp"

#include <dlfcn.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>

#include "device/cuda/check_cuda.hpp"

namespace lockstep::cuda {
namespace {

using Uuid = std::array<std::uint8_t, 16>;

struct CloseLibrary {
  void operator()(void* library) const noexcept { ::dlclose(library); }
};

// Of the driver that CUDA's runtime has loaded. The runtime's own query asks for cuDeviceGetUuid of CUDA 9.2, which
// returns the UUID of the whole GPU for each of its slices.
class Driver {
 public:
  // The GPU's UUID, or that of its slice. Nothing if the driver does not tell.
  std::optional<Uuid> uuid(const char* function, int index) const {
    const auto device_at = find<int (*)(int* device, int index)>("cuDeviceGet");
    const auto uuid_of = find<int (*)(std::uint8_t * uuid, int device)>(function);
    int device = 0;
    Uuid uuid{};
    if (device_at == nullptr || uuid_of == nullptr || device_at(&device, index) != 0) return std::nullopt;
    if (uuid_of(uuid.data(), device) != 0) return std::nullopt;
    return uuid;
  }

 private:
  template <typename Function>
  Function find(const char* name) const {
    return library_ ? reinterpret_cast<Function>(::dlsym(library_.get(), name)) : nullptr;
  }

  std::unique_ptr<void, CloseLibrary> library_{::dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD)};
};

std::string text_of(const Uuid& uuid) {
  std::string text;
  for (std::size_t i = 0; i < uuid.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", uuid[i]);
  }
  return text;
}

std::string name_of_gpu(const Driver& driver, int index) {
  const std::optional<Uuid> own = driver.uuid("cuDeviceGetUuid_v2", index);
  if (!own) return address_of_gpu(index);
  const std::optional<Uuid> whole = driver.uuid("cuDeviceGetUuid", index);
  return (whole && whole != own ? "MIG-" : "GPU-") + text_of(*own);
}

}  // namespace

std::vector<std::string> visible_gpus() {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess) return {};
  const Driver driver;
  std::vector<std::string> names;
  for (int index = 0; index < count; ++index) names.push_back(name_of_gpu(driver, index));
  return names;
}

std::string address_of_gpu(int index) {
  std::array<char, 32> address{};
  check_cuda(cudaDeviceGetPCIBusId(address.data(), static_cast<int>(address.size()), index), "tell where a GPU sits");
  return address.data();
}

}  // namespace lockstep::cuda
