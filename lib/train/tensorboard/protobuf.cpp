#include "train/tensorboard/protobuf.hpp"

#include <bit>

namespace lockstep {
namespace {

enum class Wire : std::uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

std::string varint(std::uint64_t number) {
  std::string bytes;
  for (; number >= 0x80; number >>= 7) bytes += static_cast<char>((number & 0x7f) | 0x80);
  return bytes + static_cast<char>(number);
}

std::string key(std::uint32_t field, Wire wire) { return varint((field << 3) | static_cast<std::uint32_t>(wire)); }

}  // namespace

std::string number_field(std::uint32_t field, std::uint64_t number) {
  return key(field, Wire::varint) + varint(number);
}
std::string double_field(std::uint32_t field, double number) {
  return key(field, Wire::fixed64) + little_endian(std::bit_cast<std::uint64_t>(number));
}
std::string float_field(std::uint32_t field, float number) {
  return key(field, Wire::fixed32) + little_endian(std::bit_cast<std::uint32_t>(number));
}
std::string bytes_field(std::uint32_t field, std::string_view bytes) {
  return (key(field, Wire::bytes) + varint(bytes.size())).append(bytes);
}

}  // namespace lockstep
