// Protocol buffers by hand. Wire format: https://protobuf.dev/programming-guides/encoding/
//
// Each function returns the bytes of one field. Nested messages are bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep {

template <typename Number>
std::string little_endian(Number number) {
  std::string bytes;
  for (std::size_t i = 0; i < sizeof(Number); ++i) bytes += static_cast<char>((number >> (8 * i)) & 0xff);
  return bytes;
}

std::string number_field(std::uint32_t field, std::uint64_t number);
std::string double_field(std::uint32_t field, double number);
std::string float_field(std::uint32_t field, float number);
std::string bytes_field(std::uint32_t field, std::string_view bytes);

}  // namespace lockstep
