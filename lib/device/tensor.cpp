#include "device/tensor.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <span>

namespace lockstep {

std::string Shape::text() const {
  return fmt::format("[{}]", fmt::join(std::span(dims).first(static_cast<std::size_t>(ndim)), ", "));
}

}  // namespace lockstep
