// A driver's answers about two slices of one GPU, as the library libcuda.so.1.
#include <cstdint>
#include <cstring>

// NOLINTBEGIN(readability-identifier-naming): the driver's names
extern "C" {

int cuDeviceGet(int* device, int index) {
  *device = 100 + index;
  return 0;
}
int cuDeviceGetUuid(std::uint8_t* uuid, int) {
  std::memset(uuid, 0xab, 16);
  return 0;
}
int cuDeviceGetUuid_v2(std::uint8_t* uuid, int device) {
  std::memset(uuid, 0xab, 16);
  if (device < 102) uuid[15] = static_cast<std::uint8_t>(device);  // the third is a whole GPU
  return device == 103 ? 1 : 0;
}
}
// NOLINTEND(readability-identifier-naming)
