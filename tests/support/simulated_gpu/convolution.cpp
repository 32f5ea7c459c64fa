#include "support/simulated_gpu/convolution.hpp"

#include <bit>
#include <cmath>
#include <utility>
#include <vector>

#include "device/host_device.hpp"

namespace lockstep::simulated {
namespace {

using Values = std::vector<double>;

float load(const CudnnTensor& tensor, const std::byte* memory, std::int64_t index) {
  if (tensor.type == CUDNN_DATA_FLOAT) return reinterpret_cast<const float*>(memory)[index];
  const std::uint16_t bits = reinterpret_cast<const std::uint16_t*>(memory)[index];
  return tensor.type == CUDNN_DATA_HALF ? from_f16(bits) : from_bf16(bits);
}

void store(const CudnnTensor& tensor, std::byte* memory, std::int64_t index, float value) {
  if (tensor.type == CUDNN_DATA_FLOAT) {
    reinterpret_cast<float*>(memory)[index] = value;
    return;
  }
  reinterpret_cast<std::uint16_t*>(memory)[index] = tensor.type == CUDNN_DATA_HALF ? to_f16(value) : to_bf16(value);
}

// Calls visit(index in memory) for each element, channels innermost: the order of the dense copies below.
template <typename Visit>
void for_each_element(const CudnnTensor& tensor, const Visit& visit) {
  const auto& [n, c, h, w] = tensor.dims;
  const auto& [step_n, step_c, step_h, step_w] = tensor.strides;
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t row = 0; row < h; ++row)
      for (std::int64_t column = 0; column < w; ++column)
        for (std::int64_t channel = 0; channel < c; ++channel)
          visit(i * step_n + channel * step_c + row * step_h + column * step_w);
}

Values dense(const CudnnTensor& tensor, const std::byte* memory, Rounding rounding) {
  Values values;
  for_each_element(tensor, [&](std::int64_t index) {
    const float value = load(tensor, memory, index);
    values.push_back(rounding == Rounding::tf32_inputs ? to_tf32(value) : value);
  });
  return values;
}

// Weights with output channels innermost: [kernel row][kernel column][in][out].
CudnnTensor with_out_innermost(const CudnnTensor& weight) {
  const auto& [out, in, rows, columns] = weight.dims;
  const auto& [step_out, step_in, step_row, step_column] = weight.strides;
  CudnnTensor turned = weight;
  turned.dims = {rows, out, columns, in};
  turned.strides = {step_row, step_out, step_column, step_in};
  return turned;
}

// Calls visit(x, weight, y): places of the first output channel's product, for each position of the window and each
// input channel.
template <typename Visit>
void for_each_pair(const Convolution& convolution, const Visit& visit) {
  const auto& [n, in, h, w] = convolution.x.dims;
  const auto& [out, in_again, kernel_rows, kernel_columns] = convolution.weight.dims;
  const std::int64_t rows = convolution.y.dims[2];
  const std::int64_t columns = convolution.y.dims[3];
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t row = 0; row < rows; ++row)
      for (std::int64_t column = 0; column < columns; ++column)
        for (std::int64_t kr = 0; kr < kernel_rows; ++kr)
          for (std::int64_t kc = 0; kc < kernel_columns; ++kc) {
            const std::int64_t r = row * convolution.stride[0] + kr - convolution.padding[0];
            const std::int64_t c = column * convolution.stride[1] + kc - convolution.padding[1];
            if (r < 0 || r >= h || c < 0 || c >= w) continue;
            const std::int64_t x = ((i * h + r) * w + c) * in;
            const std::int64_t weight = (kr * kernel_columns + kc) * in * out;
            for (std::int64_t k = 0; k < in; ++k)
              visit(x + k, weight + k * out, ((i * rows + row) * columns + column) * out);
          }
}

float rounded(double value, Rounding rounding) {
  static unsigned runs = 0;  // of results that change
  const auto result = static_cast<float>(value);
  if (rounding == Rounding::half_sums) return from_bf16(to_bf16(result));
  if (rounding == Rounding::changes_each && ++runs % 2 == 1) return std::nextafter(result, 2 * result);
  return result;
}

}  // namespace

std::int64_t CudnnTensor::bytes() const {
  std::int64_t last = 0;
  for (std::size_t i = 0; i < dims.size(); ++i) last += (dims[i] - 1) * strides[i];
  return (last + 1) * element_bytes();
}

const CudnnTensor& Convolution::output() const {
  if (operation == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR) return y;
  return operation == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR ? x : weight;
}

float to_tf32(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return std::isfinite(value) ? std::bit_cast<float>((bits + 0x1000U) & ~0x1FFFU) : value;
}

void compute(const Convolution& convolution, const ConvolutionMemory& memory, Rounding rounding) {
  const CudnnTensor& output = convolution.output();
  const bool finds_y = &output == &convolution.y;
  const bool finds_x = &output == &convolution.x;
  const CudnnTensor filters = with_out_innermost(convolution.weight);
  const std::int64_t out = convolution.y.dims[1];
  Values x = finds_x ? Values() : dense(convolution.x, memory.x, rounding);
  Values weight = finds_x || finds_y ? dense(filters, memory.weight, rounding) : Values();
  Values y = finds_y ? Values() : dense(convolution.y, memory.y, rounding);
  Values& result = finds_y ? y : finds_x ? x : weight;
  result.resize(static_cast<std::size_t>(output.dims[0] * output.dims[1] * output.dims[2] * output.dims[3]));
  for_each_pair(convolution, [&](std::int64_t i, std::int64_t k, std::int64_t o) {
    double* const xs = x.data() + i;
    double* const weights = weight.data() + k;
    double* const ys = y.data() + o;
    for (std::int64_t channel = 0; channel < out; ++channel) {
      if (finds_y) ys[channel] += *xs * weights[channel];
      if (finds_x) *xs += ys[channel] * weights[channel];
      if (!finds_x && !finds_y) weights[channel] += *xs * ys[channel];
    }
  });
  std::byte* const place = finds_y ? memory.y : finds_x ? memory.x : memory.weight;
  std::size_t next = 0;
  for_each_element(finds_x || finds_y ? output : filters, [&](std::int64_t index) {
    double value = static_cast<double>(convolution.alpha) * result[next++];
    // As BLAS: with beta 0, the output may hold anything before.
    if (convolution.beta != 0) value += static_cast<double>(convolution.beta) * load(output, place, index);
    store(output, place, index, rounded(value, rounding));
  });
}

}  // namespace lockstep::simulated
