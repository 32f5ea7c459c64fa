#include "device/cuda/operands.hpp"

#include <fmt/format.h>

#include <string>

#include "base/error.hpp"

namespace lockstep::cuda {
namespace {

// "[128, 32, 32, 16] f32"
std::string text_of(const Tensor& tensor) {
  return fmt::format("{} {}", tensor.shape().text(), name_of(tensor.dtype()));
}

}  // namespace

ConvProblem problem_of(Direction direction, const Conv2d& conv, const Tensor& x, const Tensor& y) {
  const bool have_channels = x.shape()[3] == conv.in_channels && y.shape()[3] == conv.out_channels;
  const bool have_sizes =
      y.shape()[1] == conv.rows().out_size(x.shape()[1]) && y.shape()[2] == conv.columns().out_size(x.shape()[2]);
  require(
      have_channels && have_sizes && x.shape()[0] == y.shape()[0] && x.dtype() == y.dtype(), Failure::other,
      "a convolution of {} to {} channels got operands that do not fit: {} and {}. This is a defect of this program.",
      conv.in_channels, conv.out_channels, text_of(x), text_of(y));
  return {direction, conv, x.shape()[0], x.shape()[1], x.shape()[2], x.layout(), y.dtype()};
}

void require_linear(const Tensor& x, const Tensor& weight, const Tensor& y) {
  const bool are_f32 = x.dtype() == DType::f32 && weight.dtype() == DType::f32 && y.dtype() == DType::f32;
  require(are_f32 && x.shape()[0] == y.shape()[0] && weight.shape().count() >= x.shape()[1] * y.shape()[1],
          Failure::other,
          "a linear layer got operands that do not fit: {}, {} and a weight {}. This is a defect of this program.",
          text_of(x), text_of(y), text_of(weight));
}

void require_not_deferred(bool is_plain) {
  require(is_plain, Failure::other,
          "a convolution on a GPU got a deferred norm, which cuDNN does not apply. This is a defect of this program.");
}

}  // namespace lockstep::cuda
