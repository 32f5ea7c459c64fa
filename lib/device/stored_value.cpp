#include "device/stored_value.hpp"

#include "device/host_device.hpp"

namespace lockstep {

void write_value(const Tensor& tensor, std::int64_t place, float value) {
  switch (tensor.dtype()) {
    case DType::f32:
      tensor.as<float>()[place] = value;
      return;
    case DType::bf16:
      tensor.as<std::uint16_t>()[place] = to_bf16(value);
      return;
    case DType::f16:
      tensor.as<std::uint16_t>()[place] = to_f16(value);
      return;
    case DType::i64:
      tensor.as<std::int64_t>()[place] = static_cast<std::int64_t>(value);
      return;
    case DType::i32:
      tensor.as<std::int32_t>()[place] = static_cast<std::int32_t>(value);
      return;
    case DType::u8:
      tensor.as<std::uint8_t>()[place] = static_cast<std::uint8_t>(value);
      return;
  }
}

float read_value(const Tensor& tensor, std::int64_t place) {
  switch (tensor.dtype()) {
    case DType::f32:
      return tensor.as<float>()[place];
    case DType::bf16:
      return from_bf16(tensor.as<std::uint16_t>()[place]);
    case DType::f16:
      return from_f16(tensor.as<std::uint16_t>()[place]);
    case DType::i64:
      return static_cast<float>(tensor.as<std::int64_t>()[place]);
    case DType::i32:
      return static_cast<float>(tensor.as<std::int32_t>()[place]);
    case DType::u8:
      return static_cast<float>(tensor.as<std::uint8_t>()[place]);
  }
  return 0;
}

}  // namespace lockstep
