#include "device/tensor.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <span>

namespace lockstep {

const char* name_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return "f32";
    case DType::bf16:
      return "bf16";
    case DType::f16:
      return "f16";
    case DType::i64:
      return "i64";
    case DType::i32:
      return "i32";
    case DType::u8:
      return "u8";
  }
  return "";
}

std::string Shape::text() const {
  return fmt::format("[{}]", fmt::join(std::span(dims).first(static_cast<std::size_t>(ndim)), ", "));
}

}  // namespace lockstep
